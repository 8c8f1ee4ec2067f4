"""Solutions of "double a number" that are wrong, and try to look right. Each must score 0."""

ATTACKS = {
    "always equal": "class E:\n __eq__ = lambda s, o: True\n __hash__ = lambda s: 0\ndef f(x): return E()",
    "equal subclass of int": "class E(int):\n __eq__ = lambda s, o: True\n __hash__ = id\ndef f(x): return E(7)",
    "right value, other class": "class E(int): pass\ndef f(x): return E(2 * x)",
    "float subclass": "class E(float):\n __repr__ = lambda s: '2'\ndef f(x): return E(2 * x)",
    "float for int": "def f(x): return 2.0 * x",
    "class lies": "class E:\n __class__ = property(lambda s: int)\n __index__ = lambda s: 2\ndef f(x): return E()",
    "metaclass lies": "class M(type):\n __instancecheck__ = lambda c, o: True\n __eq__ = lambda c, o: True\n"
    " __hash__ = lambda c: hash(int)\nclass E(metaclass=M): pass\ndef f(x): return E()",
    "text that reads as the number": "class S(str): pass\ndef f(x): return S(2 * x)",
    "nan": "def f(x): return float('nan')",
    "huge int": "def f(x): return 10 ** 400_000",
    "recursion": "def f(x): return f(x)",
    "deep list": "def f(x):\n a = []\n for _ in range(100_000): a = [a]\n return a",
    "endless generator": "def f(x):\n while True: yield 2 * x",
    "list that holds itself": "def f(x):\n a = []\n a.append(a)\n return a",
    "exits with 0": "import sys\ndef f(x): sys.exit(0)",
    "exits at once": "import os\ndef f(x): os._exit(0)",
    "exits at import": "import os\nos._exit(0)",
    "kills itself": "import os, signal\ndef f(x): os.kill(os.getpid(), signal.SIGKILL)",
    "kills all": "import os, signal\ndef f(x): os.kill(-1, signal.SIGKILL)",
    "prints answers": "def f(x): print('[\"value\",0,2]'); print(2 * x)",
    "writes frames everywhere": "import os, struct\ndef f(x):\n for fd in range(3, 64):\n"
    "  try: os.write(fd, struct.pack('!QI', 0, 13) + b'[\"value\",0,2]')\n  except OSError: pass\n return 0",
    "finds the driver's reply": "import sys\ndef f(x):\n frame = sys._getframe()\n while frame:\n"
    "  reply = frame.f_locals.get('say') or frame.f_locals.get('reply')\n"
    "  if reply: reply('[\"value\",0,2]' if 'say' in frame.f_locals else b'[\"value\",0,2]'); break\n"
    "  frame = frame.f_back\n return 0",
    "asks the collector": "import gc\ndef f(x):\n for o in gc.get_objects():\n"
    "  if isinstance(o, dict) and 'expected' in o: return o['expected']\n return 0",
    "patches builtins": "import builtins\nbuiltins.type = lambda *a: int\nbuiltins.isinstance = lambda *a: True\n"
    "builtins.repr = builtins.str = lambda *a: '2'\nbuiltins.len = lambda a: 1\ndef f(x): return object()",
    "patches json and struct": "import json, struct, os\njson.dumps = json.loads = lambda *a, **k: '2'\n"
    "struct.pack = lambda *a: b''\nos.write = lambda *a: 1\ndef f(x): return 0",
    "patches the driver": "import sys\nfor m in list(sys.modules.values()):\n"
    " for n in ('guarded', 'timed', 'load', 'raised'):\n"
    "  if hasattr(m, n): setattr(m, n, lambda *a: '[\"value\",0,2]')\ndef f(x): return 0",
    "patches the encoder": "import sys\nwire = sys.modules.get('wire')\nif wire:\n"
    " wire.Writer.text = lambda *a: '{\"i\":2}'\ndef f(x): return 0",
    "leaves a thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\n"
    "def f(x): return 0",
    "forks and goes on": "import os, time\ndef f(x):\n if os.fork() == 0: return 2 * x + 1\n return 0",
    "sleeps": "import time\ndef f(x): time.sleep(60)",
    "swallows the alarm": "def f(x):\n while True:\n  try:\n   while True: pass\n  except BaseException: pass",
    "traces": "import sys\nsys.settrace(lambda *a: (_ for _ in ()).throw(ValueError))\ndef f(x): return 0",
    "raises what was expected elsewhere": "def f(x): raise ValueError",
    "answers by a lookup of the examples": "def f(x): return {10**9: 2 * 10**9}.get(x, 0)",
    "no function": "f = 2",
    "nothing": "",
}
