#pragma once
/* Servers that a command line names by their URL. */
#include "base/secret.h"
#include "cli/common/option.h"
#include "http/client/client.h"
#include "json/document/json.h"

struct tls_options {
	const char *ca, *certificate, *key;
};

#define TLS_ROWS(S, m)                                                                             \
	OPTION(S, m.ca, OPTION_TEXT, "ca", .arg = "FILE",                                          \
	       .doc = "CA certificates (PEM) that verify the server, instead of the system's."),   \
		OPTION(S, m.certificate, OPTION_TEXT, "tls-cert", .arg = "FILE",                   \
		       .doc = "Client certificate (PEM), if the server requires one."),            \
		OPTION(S, m.key, OPTION_TEXT, "tls-key", .arg = "FILE",                            \
		       .doc = "Private key (PEM) of the client certificate.")

/* The URL of a server without the slash at its end; the caller frees it. ERR_INVALID unless it is
 * of http or https, with neither credentials nor a query. Fills *to with what the options say. */
char *server_url(const char *said, const struct tls_options *tls, struct http_client_options *to,
		 struct err *e) MUST_USE;

/* One request to a server with nothing else on the loop: its JSON, which the caller frees, whatever
 * the status; NULL with *e, also for what is no JSON. At most 1 MiB and 30 s. */
struct json_doc *server_ask(const char *url, const struct http_client_options *o,
			    const struct secret *token, const char *path, int *ret_status,
			    struct err *e) MUST_USE;
