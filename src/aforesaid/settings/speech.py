"""Read the configuration of speech services."""

from __future__ import annotations

from typing import Final

from aforesaid.settings.layered_values import LayeredValues
from aforesaid.settings.value_types import Chain
from aforesaid.settings.values import Speech, SpeechOperation

_PLAIN: Final = Speech()
_NOBODY: Final = Chain((), without=True)


def read_speech(sources: LayeredValues) -> Speech:
    """Return the speech services. `none` in a chain has no effect: without a service, bots use text anyway."""

    def chain(operation: SpeechOperation) -> Chain:
        found: Chain = sources.take("speech", operation, default=_NOBODY)
        return found

    return Speech(
        hear=chain("hear").choices,
        speak=chain("speak").choices,
        language=sources.take("speech", "language", default=_PLAIN.language),
        voice=sources.take("speech", "voice", default=_PLAIN.voice),
        timeout=sources.take("speech", "timeout", default=_PLAIN.timeout),
    )
