"""Verifies the identity of a Mumble server.

Most Mumble servers use a self-signed certificate, which is verified by a fingerprint in the settings. Connections to
this machine itself are not verified.
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
    """The address of a server, and how to verify it."""

    host: str
    port: int = 64738
    fingerprint: str | None = None
    """SHA-256 of its certificate, in hexadecimal digits, with or without colons."""
    certificate: Path | None = None
    """A PEM file with the bot's own certificate and key."""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


async def open_connection(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect, and verify the server before anything is sent."""
    expected = None if address.fingerprint is None else plain_fingerprint(address.fingerprint)
    unchecked = expected is not None or _is_here(address.host)
    try:
        reader, writer = await _open(address, _context(address, check=not unchecked))
    except ssl.SSLCertVerificationError as error:
        raise await _unknown(address, error) from None
    if expected is not None and (found := _fingerprint(writer)) != expected:
        writer.transport.abort()
        raise PlatformRefused(
            f"the certificate of the Mumble server at {address} has the fingerprint {found}, not {expected}. If the "
            f"certificate was renewed, change bots.mumble.fingerprint; otherwise this may be another server"
        )
    return reader, writer


def plain_fingerprint(given: str) -> str:
    """Return a fingerprint as lowercase digits. Raises PlatformRefused if it is none."""
    digits = given.replace(":", "").replace(" ", "").casefold()
    if not _FINGERPRINT.fullmatch(digits):
        raise PlatformRefused(f"{quoted(given)} is not a fingerprint: it must be 64 hexadecimal digits (SHA-256)")
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
    """Return an error that names the fingerprint of an untrusted certificate and says how to trust it."""
    _, writer = await _open(address, _context(address, check=False))
    found = _fingerprint(writer)
    writer.transport.abort()
    return PlatformRefused(
        f"the certificate of the Mumble server at {address} is not trusted ({error.verify_message}), as is usual for "
        f"Mumble. Its fingerprint (SHA-256) is {found}. If that is your server, write into aforesaid.toml, under "
        f'[bots.mumble]: fingerprint = "{found}"'
    )


def _context(address: Address, *, check: bool) -> ssl.SSLContext:
    if check:
        context = ssl.create_default_context()
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
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
