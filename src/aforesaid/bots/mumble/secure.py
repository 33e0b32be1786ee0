"""Knowing which server it is.

Most Mumble servers sign their certificate themselves, so nobody vouches for it. It is then known by its fingerprint,
which somebody has to look at once and write down. On this machine itself nobody can stand in between.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import re
import ssl
from pathlib import Path
from typing import Final, NamedTuple

from aforesaid.errors import PlatformRefused, PlatformUnavailable, quoted

_FINGERPRINT: Final = re.compile(r"[0-9a-f]{64}")


class Address(NamedTuple):
    """Where a server is, and how it is known."""

    host: str
    port: int = 64738
    fingerprint: str | None = None
    """SHA-256 of its certificate, in hexadecimal digits, with or without colons."""
    certificate: Path | None = None
    """A file with the bot's own certificate and its key, in PEM form."""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


async def open_connection(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect, and make sure that it is the right server before anything is sent."""
    expected = None if address.fingerprint is None else plain_fingerprint(address.fingerprint)
    unchecked = expected is not None or _is_here(address.host)
    try:
        reader, writer = await _open(address, _context(address, check=not unchecked))
    except ssl.SSLCertVerificationError as error:
        raise await _unknown(address, error) from None
    if expected is not None and (found := _fingerprint(writer)) != expected:
        writer.transport.abort()
        raise PlatformRefused(
            f"the Mumble server at {address} is not the one that it should be: its certificate has the fingerprint "
            f"{found}, and not {expected}. If its certificate was renewed, change bots.mumble.fingerprint"
        )
    return reader, writer


def plain_fingerprint(given: str) -> str:
    """Return a fingerprint in one form, or say what one looks like."""
    digits = given.replace(":", "").replace(" ", "").casefold()
    if not _FINGERPRINT.fullmatch(digits):
        raise PlatformRefused(f"{quoted(given)} is no fingerprint: it must be the 64 hexadecimal digits of a SHA-256")
    return digits


async def _open(address: Address, context: ssl.SSLContext) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        return await asyncio.open_connection(address.host, address.port, ssl=context, server_hostname=address.host)
    except ssl.SSLCertVerificationError:
        raise
    except OSError as error:
        why = error.strerror or str(error) or type(error).__name__
        raise PlatformUnavailable(f"no Mumble server can be reached at {address}: {why}") from error


async def _unknown(address: Address, error: ssl.SSLCertVerificationError) -> PlatformRefused:
    """Look at the certificate that nobody vouches for, and say how to trust it."""
    _, writer = await _open(address, _context(address, check=False))
    found = _fingerprint(writer)
    writer.transport.abort()
    return PlatformRefused(
        f"nobody vouches for the certificate of the Mumble server at {address} ({error.verify_message}), as is usual "
        f"for Mumble. Its fingerprint (SHA-256) is {found}. If that is your server, write into aforesaid.toml, under "
        f'[bots.mumble]: fingerprint = "{found}"'
    )


def _context(address: Address, *, check: bool) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if not check:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if address.certificate is not None:
        try:
            context.load_cert_chain(address.certificate)
        except (OSError, ssl.SSLError) as error:
            raise PlatformRefused(
                f"the bot's own certificate {address.certificate} cannot be used: {error}. It must be a PEM file that "
                f"holds a certificate and its key"
            ) from error
    return context


def _fingerprint(writer: asyncio.StreamWriter) -> str:
    return hashlib.sha256(writer.get_extra_info("ssl_object").getpeercert(binary_form=True)).hexdigest()


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
