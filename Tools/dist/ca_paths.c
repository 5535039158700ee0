/* Where OpenSSL looks for certificates of authorities that are trusted.

   Linked in place of the member of libcrypto that answers with the paths of
   the distribution it was built for: systems keep them in different places,
   and the interpreter is to run on all of them.  Owns the list of places;
   knows nothing of Python.  SSL_CERT_FILE and SSL_CERT_DIR go before all
   this, as everywhere. */

#include <stddef.h>
#include <unistd.h>

/* From libcrypto's public header, which would also declare them const in
   other ways in other versions. */
const char *X509_get_default_private_dir(void);
const char *X509_get_default_cert_area(void);
const char *X509_get_default_cert_dir(void);
const char *X509_get_default_cert_file(void);
const char *X509_get_default_cert_dir_env(void);
const char *X509_get_default_cert_file_env(void);

/* One file with all certificates.  The first is Debian's, Alpine's and
   Arch's, the next three Red Hat's (the newest first), then SUSE's. */
static const char * const cert_files[] = {
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/tls/cert.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    NULL
};

/* Files by hash of their subject, looked up one by one. */
static const char * const cert_dirs[] = {
    "/etc/ssl/certs",
    "/etc/pki/tls/certs",
    NULL
};

/* The system may be given certificates while the program runs, so that
   nothing is remembered.  If there is none, the first place is what an
   error message should name. */
static const char *
first_readable(const char * const *paths)
{
    for (const char * const *path = paths; *path != NULL; path++) {
        if (access(*path, R_OK) == 0) {
            return *path;
        }
    }
    return paths[0];
}

const char *
X509_get_default_cert_file(void)
{
    return first_readable(cert_files);
}

const char *
X509_get_default_cert_dir(void)
{
    return first_readable(cert_dirs);
}

/* openssl.cnf is read from here: Debian's place.  Red Hat's file asks for
   what only Red Hat's OpenSSL knows. */
const char *
X509_get_default_cert_area(void)
{
    return "/usr/lib/ssl";
}

const char *
X509_get_default_private_dir(void)
{
    return "/usr/lib/ssl/private";
}

const char *
X509_get_default_cert_dir_env(void)
{
    return "SSL_CERT_DIR";
}

const char *
X509_get_default_cert_file_env(void)
{
    return "SSL_CERT_FILE";
}
