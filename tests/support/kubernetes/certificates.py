"""Certificates for a server on the loopback and for its clients, made at once."""

from __future__ import annotations

import datetime
import ipaddress
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Pair(NamedTuple):
    """A certificate and its key, both PEM."""

    chain: bytes
    key: bytes


class Authority:
    """An authority that signs certificates."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("tests")
        certificate = self._builder(self._name, self._key.public_key(), is_authority=True)
        self.pem = certificate.public_bytes(serialization.Encoding.PEM).decode()

    def sign(self, name: str, *, days: int = 1, passphrase: bytes | None = None) -> Pair:
        """A certificate for 127.0.0.1, and for a name."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._builder(_name(name), key.public_key(), days=days, names=(name,))
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if passphrase:
            encryption = serialization.BestAvailableEncryption(passphrase)
        return Pair(
            certificate.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
            ),
        )

    def _builder(
        self,
        name: x509.Name,
        key: ec.EllipticCurvePublicKey,
        *,
        is_authority: bool = False,
        days: int = 1,
        names: tuple[str, ...] = (),
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=abs(days) + 1))
            .not_valid_after(now + datetime.timedelta(days=days))
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
        )
        if names:
            here = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
            all_names = x509.SubjectAlternativeName([here, *map(x509.DNSName, names)])
            builder = builder.add_extension(all_names, critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
