"""Admit environments: check that each is sound, and write the certificate without which nothing trains."""

from palestra.gate.certificate import Verification, verify
from palestra.gate.config import GateConfig
from palestra.gate.run import GateReport, check, check_bundles

__all__ = ["GateConfig", "GateReport", "Verification", "check", "check_bundles", "verify"]
