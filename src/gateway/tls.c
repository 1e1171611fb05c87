/* See gateway.h. OpenSSL with its bytes in memory: it opens nothing and calls no socket. */
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/gateway.h"

struct tls {
	SSL *ssl;
	BIO *received, *to_send;
};

/* Where systems keep the certificates that programs trust. */
static const char *const stores[] = {
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/ca-bundle.pem",
	"/etc/ssl/cert.pem",
};

static bool add_certificates(SSL_CTX *context, const struct gateway_route *route)
{
	X509_STORE *store = SSL_CTX_get_cert_store(context);
	BIO *bio = BIO_new_mem_buf(route->ca, (int)route->ca_length);
	size_t count = 0;
	for (X509 *certificate; bio && (certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL)); count++) {
		X509_STORE_add_cert(store, certificate);
		X509_free(certificate);
	}
	BIO_free(bio);
	ERR_clear_error();
	return count;
}

const char *tls_prepare(struct gateway_route *route)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	bool has_store = false;
	if (!context)
		return "out of memory";
	for (size_t i = 0; i < ARRAY_SIZE(stores) && !has_store; i++)
		has_store = access(stores[i], R_OK) == 0 && SSL_CTX_load_verify_file(context, stores[i]) == 1;
	ERR_clear_error();
	if (route->ca && !add_certificates(context, route))
		return "the file of certificates has none";
	if (!has_store && !route->ca)
		return "the system's certificates are in no place where they are looked for";
	SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	route->tls = context;
	return NULL;
}

static bool set_name(SSL *ssl, const struct host *host)
{
	X509_VERIFY_PARAM *verify = SSL_get0_param(ssl);
	if (host->form != HOST_NAME)
		return X509_VERIFY_PARAM_set1_ip_asc(verify, host->name) == 1;
	X509_VERIFY_PARAM_set_hostflags(verify, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, host->name) == 1 && SSL_set_tlsext_host_name(ssl, host->name) == 1;
}

struct tls *tls_new(const struct gateway_route *route)
{
	struct tls *tls = calloc(1, sizeof(*tls));
	if (!tls)
		return NULL;
	tls->ssl = SSL_new(route->tls);
	tls->received = BIO_new(BIO_s_mem());
	tls->to_send = BIO_new(BIO_s_mem());
	if (!tls->ssl || !tls->received || !tls->to_send || !set_name(tls->ssl, &route->host)) {
		BIO_free(tls->received);
		BIO_free(tls->to_send);
		SSL_free(tls->ssl);
		free(tls);
		return NULL;
	}
	BIO_set_mem_eof_return(tls->received, -1);
	SSL_set_bio(tls->ssl, tls->received, tls->to_send);
	SSL_set_connect_state(tls->ssl);
	return tls;
}

void tls_put_received(struct tls *tls, const void *bytes, size_t length)
{
	(void)!BIO_write(tls->received, bytes, (int)length);
}

size_t tls_take_to_send(struct tls *tls, void *bytes, size_t size)
{
	int got = BIO_read(tls->to_send, bytes, (int)size);
	return got > 0 ? (size_t)got : 0;
}

int tls_handshake(struct tls *tls, const char **ret_why)
{
	int done = SSL_do_handshake(tls->ssl);
	if (done == 1)
		return 1;
	if (SSL_get_error(tls->ssl, done) == SSL_ERROR_WANT_READ)
		return 0;
	long verified = SSL_get_verify_result(tls->ssl);
	*ret_why =
		verified != X509_V_OK ? X509_verify_cert_error_string(verified) : "it does not speak TLS as it should";
	return -1;
}

long tls_read(struct tls *tls, void *bytes, size_t size)
{
	int got = SSL_read(tls->ssl, bytes, (int)size);
	if (got > 0)
		return got;
	int why = SSL_get_error(tls->ssl, got);
	return why == SSL_ERROR_WANT_READ ? 0 : why == SSL_ERROR_ZERO_RETURN ? -1 : -2;
}

int tls_write(struct tls *tls, const void *bytes, size_t length)
{
	return !length || SSL_write(tls->ssl, bytes, (int)length) == (int)length ? 0 : -1;
}
