"""A certificate authority for a test, and a server certificate of it."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_Key = ec.EllipticCurvePrivateKey


def authority(folder: Path, addresses: tuple[str, ...] = ("127.0.0.1", "127.0.0.2")) -> tuple[Path, ssl.SSLContext]:
    """The authority's certificate as a PEM file, and the server's side for these addresses."""
    root, root_key = _certificate("Test authority", None, None, ())
    leaf, leaf_key = _certificate("Test hub", root, root_key, addresses)
    trusted, chain = folder / "authority.pem", folder / "server.pem"
    trusted.write_bytes(root.public_bytes(serialization.Encoding.PEM))
    private = leaf_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    chain.write_bytes(private + leaf.public_bytes(serialization.Encoding.PEM))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(chain)
    return trusted, server


def _certificate(
    name: str, issuer: x509.Certificate | None, issuer_key: _Key | None, addresses: tuple[str, ...]
) -> tuple[x509.Certificate, _Key]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    signer = issuer_key or key
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer is not None else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if addresses:
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(one)) for one in addresses])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(signer, hashes.SHA256()), key
