"""Words to fill shapes with: short, common, and of every way of forming a plural. A table."""

from __future__ import annotations

import re

WORDS = tuple(
    """
    age air ant apple area arm art axis baby back bag ball band bank base basis bat bath beach bean bear bed bee beer
    bell belt bench bird block board boat body bone book boot box boy brain branch bread brick bridge brush bus bush
    cake calf camel camera card case cat cell chair chart chef child church circle city class clock cloud coach coat
    code coin color comb copy corn cow crash crew crisis cross crow cup curve cycle dance data date day deer desk dish
    dog door dress drum duck duty dwarf ear echo edge egg elbow elf email enemy entry error event eye face fact family
    fan farm fee field file film finger fire fish flag flame fly foot force fork form fox frame friend frog fruit fuel
    game gas gate gift girl glass goal goat gold goose grape grass group guest gulf hair half hand hat head heart hero
    hill hive home hood hook horse host hotel house idea image inch index input iris iron island item jacket jar jaw
    jelly jet job joke judge juice key king kiss kite knee knife knot lady lake lamp law leaf leg lens lemon letter
    level life light line lion list loaf lock log lord loss lunch man map mark mask match matrix meal media medium
    melon menu mess metal mile milk mind moon mouse mouth movie mud name nation neck nest net news night node nose note
    number oasis ocean offer office oil order oven owl owner ox page pair paint palm pan paper park part party pass
    path pen penny person phone photo piano pie pig pilot pin plan plant plate player poem point pond pony post potato
    price proxy pupil queen quiz radio radius rain range ray reef rice ring river road robot rock roof room root rope
    rose ruby rule sale salt school sea seat seed series sheep shelf shell ship shoe shop sign size sky snow sock song
    spoon spy stamp star state status stem step stone story street sun swan table tail tax taxi tea team test text
    theme thief thing ticket tiger time toe tomato tool tooth topic tower toy train tray tree truck tube type unit user
    valley value vertex video view virus voice wage wall war watch water wave way web week wheel wife wind window wing
    wish wolf woman wood word work world yard year zebra zero zone
    """.split()
)

ACCENTS = {"a": "áàäâåã", "c": "ç", "e": "éèëê", "i": "íìïî", "n": "ñ", "o": "óòöôø", "u": "úùüû", "y": "ý", "s": "ß"}


def harvest(text: str, longest: int = 9) -> tuple[str, ...]:
    """The distinct lower-case words of 3 to ``longest`` letters in ``text``, in order of first use."""
    return tuple(dict.fromkeys(re.findall(rf"(?<![a-z])[a-z]{{3,{longest}}}(?![a-z])", text.lower())))


def plural(word: str) -> str:
    """A plural-looking form, by spelling alone."""
    if re.search(r"(s|x|z|ch|sh)$", word):
        return word + "es"
    if re.search(r"[^aeiou]y$", word):
        return word[:-1] + "ies"
    return word + "s"
