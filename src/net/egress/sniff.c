#include "net/egress/sniff.h"

#include <stdbool.h>

enum { LINE_MAX_BYTES = 8192 };

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* "... HTTP/" and whatever follows. */
static bool names_http(struct str line)
{
	for (size_t i = 0; i + 5 <= line.n; i++) {
		if ((line.p[i] | 32) == 'h' && (line.p[i + 1] | 32) == 't' &&
		    (line.p[i + 2] | 32) == 't' && (line.p[i + 3] | 32) == 'p' &&
		    line.p[i + 4] == '/')
			return true;
	}
	return false;
}

/* A word and a space: the beginning of a request, whatever else is wrong with it. */
static bool begins_request(struct str line)
{
	size_t n = 0;

	while (n < line.n && line.p[n] > 0x20 && line.p[n] < 0x7f)
		n++;
	return n > 0 && n < line.n && line.p[n] == ' ';
}

enum sniff sniff(struct str bytes)
{
	size_t from = 0;

	if (bytes.n > 0 && bytes.p[0] == 0x16)
		return SNIFF_TLS;
	while (from < bytes.n && is_blank(bytes.p[from]))
		from++;
	for (size_t i = from; i < bytes.n; i++) {
		unsigned char c = (unsigned char)bytes.p[i];
		struct str line = { bytes.p + from, i - from };

		if (c == '\n')
			return names_http(line) ? SNIFF_HTTP : SNIFF_RAW;
		/* no byte of a request line, but a server may pass over it */
		if (c < 0x20 && !is_blank((char)c))
			return names_http(line) || begins_request(line) ? SNIFF_HTTP : SNIFF_RAW;
	}
	return bytes.n < LINE_MAX_BYTES ? SNIFF_MORE : SNIFF_HTTP;
}
