/* The files of the page, from memory. */
#include <stdio.h>

#include "base/id.h"
#include "door/page/internal.h"

enum { HTML_MAX = 64 << 10, POLICY_MAX = 1 << 10 };

/* Nothing but our own scripts runs, nothing is loaded from elsewhere, no text ever becomes HTML.
 * The nonce is for the styles that the terminal makes. */
#define POLICY                                                                                     \
	"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-%s'; img-src 'self' "      \
	"blob:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "        \
	"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

#define FILE_HEADERS                                                                               \
	{ "X-Content-Type-Options", STR_LIT("nosniff") },                                          \
		{ "Referrer-Policy", STR_LIT("no-referrer") },                                     \
		{ "Cross-Origin-Resource-Policy", STR_LIT("same-origin") },                        \
	{                                                                                          \
		"Cross-Origin-Opener-Policy", STR_LIT("same-origin")                               \
	}

#define ABSENT                                                                                     \
	"This holt was built without its page, since Node.js and npm were missing.\n"              \
	"`scripts/deps` installs them; then build again. The command line, /v1 and /mcp work.\n"

/* Copies the page with this nonce. */
static int files_fill(struct buf *to, const char *nonce, struct err *e)
{
	const char *at = page_html, *mark;

	while ((mark = strstr(at, NONCE))) {
		if (buf_addf(to, e, "%.*s%s", (int)(mark - at), at, nonce) < 0)
			return -1;
		at = mark + strlen(NONCE);
	}
	return buf_addf(to, e, "%s", at);
}

void page_show(void *owner, struct http_request *q)
{
	autobuf struct buf html = BUF_INIT(HTML_MAX);
	char nonce[ID_MAX], policy[POLICY_MAX];
	struct http_header headers[] = {
		FILE_HEADERS,
		{ "Cache-Control", STR_LIT("no-store") },
		{ "Content-Security-Policy", STR_NONE },
	};
	struct http_reply reply = {
		.status = 501,
		.type = "text/plain; charset=utf-8",
		.body = STR_LIT(ABSENT),
		.headers = headers,
		.n_headers = ARRAY_LEN(headers),
	};
	struct err e;

	id_make(nonce, "n");
	snprintf(policy, sizeof(policy), POLICY, nonce);
	headers[ARRAY_LEN(headers) - 1].value = str_of(policy);
	if (page_html && files_fill(&html, nonce, &e) < 0) {
		http_reply_error(q, &e);
		return;
	}
	if (page_html) {
		reply.status = 200;
		reply.type = "text/html; charset=utf-8";
		reply.body = buf_str(&html);
	}
	http_reply(q, &reply);
}

/* The name of a file has a digest of what is in it, so it never changes. */
void page_send_file(void *owner, struct http_request *q)
{
	static const struct http_header headers[] = {
		FILE_HEADERS,
		{ "Content-Encoding", STR_LIT("gzip") },
		{ "Cache-Control", STR_LIT("public, max-age=31536000, immutable") },
	};
	struct err e;

	for (size_t i = 0; i < page_files_n; i++) {
		const struct page_file *f = &page_files[i];

		if (!str_is(http_request_rest(q), f->path))
			continue;
		http_reply(q, &(struct http_reply){ .status = 200,
						    .type = f->type,
						    .body = { f->bytes, f->n },
						    .headers = headers,
						    .n_headers = ARRAY_LEN(headers) });
		return;
	}
	err_set(&e, ERR_ROUTE, "the page has no such file");
	http_reply_error(q, &e);
}
