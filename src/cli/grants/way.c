/*
 * How names are reached in the network that the host is in: by the section "network" of the
 * operator's file, and for the proxy without it by the variables that curl takes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/log.h"
#include "cli/grants/grants.h"
#include "guard/gate/gate.h"

enum { PROXY_PORT = 1080 /* as curl has it */ };

void way_free(struct nets_way *w)
{
	if (!w)
		return;
	secret_free(w->auth);
	free((char *)w->ca.p);
	free(w);
}

/* ---- the proxy ----------------------------------------------------------------------------- */

static int way_hex(char c)
{
	const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c | 0x20) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* "user:password" of a URL, without its escapes. */
static int way_auth(struct nets_way *w, struct str text, struct err *e)
{
	autowipe struct buf plain = BUF_INIT(NW_AUTH_MAX);

	for (size_t i = 0; i < text.n; i++) {
		int high = text.p[i] == '%' && i + 2 < text.n ? way_hex(text.p[i + 1]) : -1;
		int low = high >= 0 ? way_hex(text.p[i + 2]) : -1;
		char c = (char)(low >= 0 ? high << 4 | low : text.p[i]);

		if (buf_add(&plain, &c, 1, e) < 0)
			return -1;
		i += low >= 0 ? 2 : 0;
	}
	w->auth = secret_new(buf_str(&plain), e);
	return w->auth ? 0 : -1;
}

/* [http://][USER[:PASSWORD]@]HOST[:PORT][/]. No message has the text, which may have a password. */
static int way_proxy(struct nets_way *w, struct str url, struct err *e)
{
	static const char scheme[] = "http://";
	const char *at, *colon;
	struct net_addr address;
	struct str host;

	if (str_starts(url, scheme))
		url = (struct str){ url.p + sizeof(scheme) - 1, url.n - sizeof(scheme) + 1 };
	else if (memmem(url.p, url.n, "://", 3))
		return err_set(e, ERR_UNSUPPORTED, "only a proxy of http:// can be used");
	if (url.n && url.p[url.n - 1] == '/')
		url.n--;
	at = memrchr(url.p, '@', url.n);
	if (at && way_auth(w, (struct str){ url.p, (size_t)(at - url.p) }, e) < 0)
		return -1;
	if (at)
		url = (struct str){ at + 1, url.n - (size_t)(at + 1 - url.p) };
	colon = memrchr(url.p, ':', url.n);
	host = colon ? (struct str){ url.p, (size_t)(colon - url.p) } : url;
	w->proxy_port = PROXY_PORT;
	if (colon && !net_port_read((struct str){ colon + 1, url.n - host.n - 1 }, &w->proxy_port))
		return err_set(e, ERR_INVALID, "the proxy's port is no number from 1 to 65535");
	if (host.n < sizeof(w->proxy) && net_addr_parse(host, &address))
		net_addr_print(&address, w->proxy);
	else if (!net_host_read(host, w->proxy))
		return err_set(e, ERR_INVALID, "write http://HOST:PORT");
	return 0;
}

/* NULL: none of them is set. */
static const char *way_variable(const char *const names[])
{
	for (; *names; names++) {
		const char *value = getenv(*names);

		if (value && *value)
			return value;
	}
	return NULL;
}

/* A name, and all below it. */
static int way_direct(struct nets_way *w, struct str name, struct err *e)
{
	struct net_rule r = { .kind = NET_RULE_NAME };
	struct net_addr address;
	struct net_cidr range;

	if (str_is(name, "*")) {
		w->proxy[0] = 0;
		return 0;
	}
	if (str_starts(name, "*.") || str_starts(name, "."))
		name = (struct str){ memchr(name.p, '.', name.n) + 1,
				     name.n - (name.p[0] == '*' ? 2u : 1u) };
	if (net_addr_parse(name, &address) || net_cidr_parse(name, &range))
		return 0; /* addresses are never asked of the proxy */
	if (net_host_parse(name, r.host, e) < 0)
		return -1;
	if (w->n_direct + 2 > NW_NAMES_MAX)
		return err_set(e, ERR_LIMIT, "at most %d names", NW_NAMES_MAX / 2);
	w->direct[w->n_direct++] = r;
	r.kind = NET_RULE_SUFFIX;
	w->direct[w->n_direct++] = r;
	return 0;
}

/* What is no name here is left out, as curl does. */
static void way_direct_words(struct nets_way *w, const char *text)
{
	struct err e;

	while (text && *text) {
		size_t skip = strspn(text, ", "), n = strcspn(text + skip, ", ");

		if (n && way_direct(w, (struct str){ text + skip, n }, &e) < 0)
			log_warn("NO_PROXY: %s", e.msg);
		text += skip + n;
	}
}

static int way_by_environment(struct nets_way *w, struct err *e)
{
	static const char *const proxy[] = { "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
					     NULL };
	static const char *const none[] = { "no_proxy", "NO_PROXY", NULL };
	const char *url = way_variable(proxy);

	if (!url)
		return 0;
	if (way_proxy(w, str_of(url), e) < 0)
		return err_wrap(e, "HTTPS_PROXY of the environment");
	way_direct_words(w, way_variable(none));
	return 0;
}

static int way_by_file(struct nets_way *w, const struct config_file *f, struct err *e)
{
	const struct config_network *n = &f->network;
	char data[PATH_MAX];
	struct err homeless;

	if (n->proxy.n && way_proxy(w, n->proxy, e) < 0)
		return err_wrap(e, "network.proxy");
	for (size_t i = 0; i < n->no_proxy.n; i++) {
		if (way_direct(w, n->no_proxy.p[i], e) < 0)
			return err_wrap(e, "network.no_proxy[%zu]", i);
	}
	if (!n->proxy_secret.n)
		return 0;
	if (w->auth)
		return err_set(e, ERR_INVALID,
			       "network.proxy has a password: proxy_secret stands for it");
	w->auth = gate_secret_now(f, home_where(".", data, &homeless) < 0 ? NULL : data,
				  n->proxy_secret, e);
	return w->auth ? 0 : err_wrap(e, "network.proxy_secret");
}

/* ---- the rest ------------------------------------------------------------------------------ */

static int way_split(struct nets_way *w, const struct config_resolvers *from, struct err *e)
{
	struct nw_split *to = &w->split[w->n_split++];

	if (net_host_parse(from->name, to->host, e) < 0)
		return -1;
	for (size_t i = 0; i < from->servers.n; i++) {
		struct net_rule r;

		if (net_rule_parse(from->servers.p[i], true, &r, e) < 0 ||
		    r.kind != NET_RULE_CIDR || r.cidr.bits != (r.cidr.addr.family == 4 ? 32 : 128))
			return err_set(e, ERR_INVALID, "%.*s: an address is needed",
				       STR_CUT(from->servers.p[i], NET_ADDR_TEXT));
		to->servers[to->n++] = (struct nw_resolver){ r.cidr.addr, r.port };
	}
	return 0;
}

static int way_private(struct nets_way *w, struct str name, struct err *e)
{
	struct net_rule *to = &w->private[w->n_private++];

	if (net_rule_parse(name, false, to, e) < 0)
		return -1;
	return !to->port ? 0 : err_set(e, ERR_INVALID, "a name without a port is wanted");
}

static int way_ca(struct nets_way *w, struct str path, struct err *e)
{
	autofree char *name = strndup(path.p, path.n), *text = NULL;
	autoclose int fd = name ? open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "open %.*s", STR_CUT(path, PATH_MAX));
	if (!S_ISREG(st.st_mode) || st.st_size > NW_CA_MAX)
		return err_set(e, ERR_INVALID, "a file of at most %d bytes is wanted", NW_CA_MAX);
	text = calloc(1, (size_t)st.st_size + 1);
	if (!text || fd_read(fd, text, (size_t)st.st_size) < 0)
		return err_sys(e, errno, "read %.*s", STR_CUT(path, PATH_MAX));
	if (!strstr(text, "-----BEGIN CERTIFICATE-----"))
		return err_set(e, ERR_INVALID, "the file has no certificate (PEM)");
	w->ca = (struct str){ take_ptr(text), (size_t)st.st_size };
	return 0;
}

struct nets_way *way_read(const struct config_file *f, struct err *e)
{
	AUTO(way_free) struct nets_way *w = calloc(1, sizeof(*w));
	const struct config_network *n = f ? &f->network : NULL;

	if (!w)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	if ((n && n->has_proxy ? way_by_file(w, f, e) : way_by_environment(w, e)) < 0)
		return NULL;
	for (size_t i = 0; n && i < n->resolvers.n; i++) {
		if (way_split(w, &n->resolvers.p[i], e) < 0)
			return err_wrap(e, "network.resolvers"), NULL;
	}
	for (size_t i = 0; n && i < n->private.n; i++) {
		if (way_private(w, n->private.p[i], e) < 0)
			return err_wrap(e, "network.private[%zu]", i), NULL;
	}
	if (n && n->ca.n && way_ca(w, n->ca, e) < 0)
		return err_wrap(e, "network.ca"), NULL;
	return take_ptr(w);
}
