#include "hub/sandbox/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/fd.h"

int trust_pem(struct str ca, struct buf *to, struct err *e)
{
	static const char *const paths[] = { TRUST_PEM, "/etc/pki/tls/certs/ca-bundle.crt",
					     "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem" };
	autoclose int fd = -1;
	struct stat st;
	char *at;

	for (size_t i = 0; i < ARRAY_LEN(paths) && fd < 0; i++)
		fd = open(paths[i], O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0) {
		at = buf_reserve(to, (size_t)st.st_size, e);
		if (!at)
			return -1;
		if (fd_read(fd, at, (size_t)st.st_size) < 0)
			return err_sys(e, errno, "read the host's trusted certificates");
		buf_advance(to, (size_t)st.st_size);
	}
	return buf_add(to, ca.p, ca.n, e);
}

/* ---- DER ------------------------------------------------------------------------------------- */

enum { SEQUENCE = 0x30, OCTETS = 0x04, CONTEXT_0 = 0xa0, CERTIFICATE_MAX = 64 * 1024 };

/* Everything of PKCS #12 but its certificates and lengths. */
static const struct str no_bytes = STR_LIT("");
static const struct str version_3 = STR_LIT("\x02\x01\x03");
static const struct str data_oid = STR_LIT("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01");
static const struct str bag_oid = STR_LIT("\x06\x0b\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x03");
static const struct str x509_oid = STR_LIT("\x06\x0a\x2a\x86\x48\x86\xf7\x0d\x01\x09\x16\x01");
/* Java takes a certificate as trusted where this attribute names what for: anything. */
static const struct str trusted = STR_LIT("\x31\x18\x30\x16\x06\x0c\x60\x86\x48\x01\x86\xf9\x66\xad"
					  "\xca\x7b\x01\x01\x31\x06\x06\x04\x55\x1d\x25\x00");

/* The value becomes one of this tag, with other bytes before it. */
static int wrap(struct buf *value, unsigned tag, struct str before, struct err *e)
{
	autobuf struct buf whole = BUF_INIT(TRUST_MAX);
	size_t n = before.n + value->n, bytes = 0;
	unsigned char head[8] = { (unsigned char)tag };
	struct buf old;

	if (n < 0x80) {
		head[1] = (unsigned char)n;
	} else {
		while (n >> 8 * bytes)
			bytes++;
		head[1] = (unsigned char)(0x80 | bytes);
		for (size_t i = 0; i < bytes; i++)
			head[2 + i] = (unsigned char)(n >> 8 * (bytes - 1 - i));
	}
	if (buf_add(&whole, head, 2 + bytes, e) < 0 || buf_add(&whole, before.p, before.n, e) < 0 ||
	    buf_add(&whole, value->p, value->n, e) < 0)
		return -1;
	old = *value;
	*value = whole;
	whole = old;
	return 0;
}

static int add_bag(struct str certificate, struct buf *to, struct err *e)
{
	autobuf struct buf bag = BUF_INIT(TRUST_MAX);

	if (buf_add(&bag, certificate.p, certificate.n, e) < 0 ||
	    wrap(&bag, OCTETS, no_bytes, e) < 0 || wrap(&bag, CONTEXT_0, no_bytes, e) < 0 ||
	    wrap(&bag, SEQUENCE, x509_oid, e) < 0 || wrap(&bag, CONTEXT_0, no_bytes, e) < 0 ||
	    buf_add(&bag, trusted.p, trusted.n, e) < 0 || wrap(&bag, SEQUENCE, bag_oid, e) < 0)
		return -1;
	return buf_add(to, bag.p, bag.n, e);
}

/* The next certificate of the PEM as DER; 0: there is none. */
static int next_certificate(struct str *pem, struct buf *der, struct err *e)
{
	static const struct str begin = STR_LIT("-----BEGIN CERTIFICATE-----"),
				end = STR_LIT("-----END CERTIFICATE-----");
	autobuf struct buf text = BUF_INIT(CERTIFICATE_MAX);
	const char *at = memmem(pem->p, pem->n, begin.p, begin.n), *stop;

	if (!at)
		return 0;
	at += begin.n;
	stop = memmem(at, (size_t)(pem->p + pem->n - at), end.p, end.n);
	if (!stop)
		return 0;
	*pem = (struct str){ stop, (size_t)(pem->p + pem->n - stop) };
	for (; at < stop; at++) {
		if ((unsigned char)*at > ' ' && buf_add(&text, at, 1, e) < 0)
			return -1;
	}
	buf_fini(der);
	return base64_decode(der, buf_str(&text), e) < 0 ? -1 : 1;
}

int trust_p12(struct str pem, struct buf *to, struct err *e)
{
	autobuf struct buf bags = BUF_INIT(TRUST_MAX), der = BUF_INIT(CERTIFICATE_MAX);
	int found;

	while ((found = next_certificate(&pem, &der, e)) > 0) {
		if (add_bag(buf_str(&der), &bags, e) < 0)
			return -1;
	}
	if (found < 0 || wrap(&bags, SEQUENCE, no_bytes, e) < 0 ||
	    wrap(&bags, OCTETS, no_bytes, e) < 0 || wrap(&bags, CONTEXT_0, no_bytes, e) < 0 ||
	    wrap(&bags, SEQUENCE, data_oid, e) < 0 || /* the safe's contents */
	    wrap(&bags, SEQUENCE, no_bytes, e) < 0 || wrap(&bags, OCTETS, no_bytes, e) < 0 ||
	    wrap(&bags, CONTEXT_0, no_bytes, e) < 0 || wrap(&bags, SEQUENCE, data_oid, e) < 0 ||
	    wrap(&bags, SEQUENCE, version_3, e) < 0)
		return -1;
	return buf_add(to, bags.p, bags.n, e);
}
