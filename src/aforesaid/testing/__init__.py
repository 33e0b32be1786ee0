"""A model for tests: an OpenAI-compatible server on this machine with scripted answers and faults on demand.

Point any OpenAI client at the `base_url` of a `ScriptedModel`; look at its `requests` afterwards.
"""

from aforesaid.testing import faults
from aforesaid.testing.faults import Fault
from aforesaid.testing.model import ScriptedModel
from aforesaid.testing.script import Request, Script, Writes

__all__ = ["Fault", "Request", "Script", "ScriptedModel", "Writes", "faults"]
