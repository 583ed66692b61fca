"""Certificates, keys and revocation lists, made while the tests run."""

from __future__ import annotations

import datetime
import ipaddress
import itertools
import os
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)
_serials = itertools.count(1000)


def write_at_once(path: Path, content: bytes, mode: int = 0o600) -> Path:
    """Puts a file in the place of another, as programs that renew certificates do."""
    beside = path.with_name(path.name + ".new")
    beside.write_bytes(content)
    beside.chmod(mode)
    os.replace(beside, path)
    return path


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


@dataclass
class Pair:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def serial(self) -> int:
        return self.certificate.serial_number

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def write(self, folder: Path, name: str) -> tuple[Path, Path]:
        """NAME.pem and NAME.key, the key first: between the two they do not fit."""
        key = write_at_once(folder / f"{name}.key", self.key_pem)
        return write_at_once(folder / f"{name}.pem", self.certificate_pem), key


class Authority:
    """What signs certificates."""

    def __init__(self, name: str, above: Authority | None = None) -> None:
        """`above`: who signs its own certificate; by default it does."""
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        issuer = above or self
        self.certificate = (
            _builder(self.name, issuer.name, self.key, now() - DAY, now() + 10 * DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(issuer.key, hashes.SHA256())
        )

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def server(self, *names: str, begin: datetime.timedelta = -DAY, end: datetime.timedelta = DAY) -> Pair:
        """A server's certificate for these names, 127.0.0.1 and localhost if there are none; valid from `begin` to
        `end`, counted from now."""
        return self._sign("server", names or ("127.0.0.1", "localhost"), ExtendedKeyUsageOID.SERVER_AUTH, begin, end)

    def client(self, name: str, *names: str, begin: datetime.timedelta = -DAY, end: datetime.timedelta = DAY) -> Pair:
        """A client's certificate; `names` are further ones, such as a SPIFFE id."""
        return self._sign(name, names, ExtendedKeyUsageOID.CLIENT_AUTH, begin, end)

    def revocations(self, *revoked: Pair, end: datetime.timedelta = DAY) -> bytes:
        """The PEM of a list of these certificates, in date until `end`, counted from now."""
        builder = x509.CertificateRevocationListBuilder().issuer_name(self.name)
        builder = builder.last_update(now() - 2 * DAY).next_update(now() + end)
        for pair in revoked:
            entry = x509.RevokedCertificateBuilder().serial_number(pair.serial).revocation_date(now() - DAY).build()
            builder = builder.add_revoked_certificate(entry)
        return builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _sign(
        self,
        name: str,
        names: tuple[str, ...],
        usage: x509.ObjectIdentifier,
        begin: datetime.timedelta,
        end: datetime.timedelta,
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = _builder(subject, self.name, key, now() + begin, now() + end)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_general_name(one) for one in names]), critical=False
            )
        return Pair(builder.sign(self.key, hashes.SHA256()), key)


def _general_name(name: str) -> x509.GeneralName:
    if "://" in name:
        return x509.UniformResourceIdentifier(name)
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    begin: datetime.datetime,
    end: datetime.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(next(_serials))
        .not_valid_before(begin)
        .not_valid_after(end)
    )


def tls_options(folder: Path, name: str = "server") -> list[str]:
    """The options of a server or a client whose pair is NAME.pem and NAME.key."""
    return [f"--tls-certificate={folder}/{name}.pem", f"--tls-key={folder}/{name}.key"]


def write_pairs(folder: Path, authority: Authority, clients: Authority) -> None:
    """The authorities' certificates (ca.pem, clients.pem, strangers.pem) and pairs: the server's, alice's, and that of
    mallory, whom strangers have signed."""
    strangers = Authority("strangers")
    for name, one in (("ca", authority), ("clients", clients), ("strangers", strangers)):
        write_at_once(folder / f"{name}.pem", one.pem)
    authority.server().write(folder, "server")
    clients.client("alice").write(folder, "alice")
    strangers.client("mallory").write(folder, "mallory")
