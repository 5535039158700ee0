"""Write the certificates of an authority that nobody knows.

usage: python3 certificates.py DIRECTORY

CA.pem is the authority's, SERVER.pem the certificate and key of `localhost`.
Needs the package cryptography.
"""

import datetime
import pathlib
import sys

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


SIGNS_CERTIFICATES = x509.KeyUsage(
    key_cert_sign=True, crl_sign=True, digital_signature=False,
    content_commitment=False, key_encipherment=False, data_encipherment=False,
    key_agreement=False, encipher_only=False, decipher_only=False)


def named(name):
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def certificate(subject, key, issuer, issuer_key, extensions):
    now = datetime.datetime.now(datetime.timezone.utc)
    day = datetime.timedelta(days=1)
    builder = x509.CertificateBuilder(
        issuer_name=named(issuer), subject_name=named(subject),
        public_key=key.public_key(), serial_number=x509.random_serial_number(),
        not_valid_before=now - day, not_valid_after=now + 30 * day)
    # Verifiers that are strict want to be told whose key it is.
    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(
        issuer_key.public_key())
    for extension, critical in [(own, False), (authority, False),
                                *extensions]:
        builder = builder.add_extension(extension, critical)
    return builder.sign(issuer_key, hashes.SHA256()).public_bytes(
        serialization.Encoding.PEM)


def main():
    directory = pathlib.Path(sys.argv[1])
    ca_key = ec.generate_private_key(ec.SECP256R1())
    key = ec.generate_private_key(ec.SECP256R1())
    (directory / 'CA.pem').write_bytes(certificate(
        'CA of a test', ca_key, 'CA of a test', ca_key,
        [(x509.BasicConstraints(ca=True, path_length=None), True),
         (SIGNS_CERTIFICATES, True)]))
    (directory / 'SERVER.pem').write_bytes(certificate(
        'localhost', key, 'CA of a test', ca_key,
        [(x509.SubjectAlternativeName([x509.DNSName('localhost')]), False)])
        + key.private_bytes(serialization.Encoding.PEM,
                            serialization.PrivateFormat.PKCS8,
                            serialization.NoEncryption()))


if __name__ == '__main__':
    main()
