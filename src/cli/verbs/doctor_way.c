#include "cli/verbs/doctor_way.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/fd.h"

enum { CONNECT_MS = 3000 };

PRINTF_LIKE(5, 6)
static void doctor_way_add(struct doctor_way *d, const char *feature, bool ok, const char *remedy,
			   const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(d->text[d->n], DOCTOR_WAY_TEXT, fmt, ap);
	va_end(ap);
	d->p[d->n] = (struct finding){ .feature = str_of(feature),
				       .ok = ok,
				       .detail = str_of(d->text[d->n]),
				       .remedy = str_of(ok ? NULL : remedy) };
	d->n++;
}

/* NULL: it answers. */
static const char *doctor_way_try(const char *host, uint16_t port)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	autoclose int fd = -1;
	char text[8];
	int failed, on;
	socklen_t n = sizeof(on);

	snprintf(text, sizeof(text), "%u", port);
	failed = getaddrinfo(host, text, &hints, &found);
	if (failed)
		return gai_strerror(failed);
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	failed = fd < 0 || (connect(fd, found->ai_addr, found->ai_addrlen) < 0 &&
			    errno != EINPROGRESS)
		       ? errno
		       : 0;
	freeaddrinfo(found);
	if (failed)
		return strerror(failed);
	if (poll(&(struct pollfd){ fd, POLLOUT, 0 }, 1, CONNECT_MS) <= 0)
		return "no answer in 3 s";
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &on, &n) < 0 || on ? strerror(on) : NULL;
}

static void doctor_way_tell(struct doctor_way *d, const struct nets_way *w,
			    const struct config_network *n)
{
	if (w->proxy[0]) {
		const char *why = doctor_way_try(w->proxy, w->proxy_port);

		doctor_way_add(
			d, "network-proxy", !why,
			"Name the proxy in network.proxy of the operator's file, or set it to "
			"\"\" where none is needed.",
			"names are reached by CONNECT through %s:%u%s, but for %zu names%s%s",
			w->proxy, w->proxy_port, w->auth ? " with a password" : "", w->n_direct / 2,
			why ? ": " : "", why ? why : "");
	}
	if (w->ca.n)
		doctor_way_add(d, "network-ca", true, NULL,
			       "%.*s is trusted by the proxy of sandboxes and in them",
			       STR_CUT(n->ca, 256));
	if (w->n_split)
		doctor_way_add(d, "network-resolvers", true, NULL,
			       "%zu names, with all below them, have name servers of their own",
			       w->n_split);
	if (w->n_private)
		doctor_way_add(d, "network-private", true, NULL,
			       "names of %zu entries may have private addresses", w->n_private);
}

void doctor_way(struct doctor_way *d)
{
	struct err e = ERR_INIT;
	AUTO(config_unref) struct config *c = config_find(NULL, &e);
	AUTO(way_free) struct nets_way *w = c ? way_read(config_file(c), &e) : NULL;

	d->n = 0;
	if (w)
		doctor_way_tell(d, w, &config_file(c)->network);
	else
		doctor_way_add(d, "network", false, "`holt config check` says where it is.", "%s",
			       e.msg);
}
