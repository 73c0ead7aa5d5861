#include "modules/registry.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "http/client/url.h"
#include "net/wire/rule.h"

enum { FILE_MAX = 64 << 10, SETTINGS_MAX = 64 << 10 };

/* Programs of the sandbox reach addresses by this alone (docs/network.md). */
#define PROXY "http://127.0.0.1:3128"

/* ---- a registry ------------------------------------------------------------------------------ */

/* "localhost" of the operator's tools is this host, not the sandbox. */
static void registry_mean(char url[REGISTRY_URL_MAX])
{
	static const char local[] = "://localhost", address[] = "://127.0.0.1";
	char *at = strstr(url, local);

	static_assert(sizeof(local) == sizeof(address), "one takes the other's place");
	if (at && strchr(":/", at[sizeof(local) - 1]))
		memcpy(at, address, sizeof(address) - 1);
}

/* Adds the rule of a URL's host. *ret_proxy: only the proxy reaches it. */
static int registry_add(struct registry *r, char url[REGISTRY_URL_MAX], bool *ret_proxy,
			struct err *e)
{
	autofree char *origin = (registry_mean(url), http_url_origin(url));
	const char *host = origin ? strstr(origin, "://") : NULL;
	bool tls = origin && str_starts(str_of(origin), "https://");
	char rule[REGISTRY_URL_MAX];
	struct net_rule parsed;

	if (!host || strchr(url, '@'))
		return err_set(e, ERR_INVALID,
			       "the registry %.100s is no URL of http or https without a password",
			       strchr(url, '@') ? "with an @" : url);
	snprintf(rule, sizeof(rule), "%s", host + 3);
	if (net_rule_parse(str_of(rule), true, &parsed, e) < 0)
		return -1;
	if (!parsed.port)
		snprintf(rule + strlen(rule), sizeof(rule) - strlen(rule), ":%d", tls ? 443 : 80);
	*ret_proxy |= parsed.kind == NET_RULE_CIDR;
	for (size_t i = 0; i < r->n_hosts; i++) {
		if (strcmp(r->hosts[i], rule) == 0)
			return 0;
	}
	if (r->n_hosts == REGISTRY_HOSTS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d registries", REGISTRY_HOSTS_MAX);
	snprintf(r->hosts[r->n_hosts++], REGISTRY_URL_MAX, "%s", rule);
	return 0;
}

/* ---- settings -------------------------------------------------------------------------------- */

static struct str registry_trim(struct str s)
{
	while (s.n && isspace((unsigned char)*s.p))
		s = (struct str){ s.p + 1, s.n - 1 };
	while (s.n && isspace((unsigned char)s.p[s.n - 1]))
		s.n--;
	if (s.n > 1 && (*s.p == '"' || *s.p == '\'') && s.p[s.n - 1] == *s.p)
		s = (struct str){ s.p + 1, s.n - 2 };
	return s;
}

/* Calls each with the settings of a file, "KEY = VALUE" a line. A missing file has none. */
static int registry_file(const char *path, struct registry *r,
			 int (*each)(struct registry *r, struct str key, struct str value,
				     struct err *e),
			 struct err *e)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	autofree char *text = fd < 0 ? NULL : malloc(FILE_MAX);
	ssize_t n = text ? read(fd, text, FILE_MAX) : 0;
	struct str rest = { text, n > 0 ? (size_t)n : 0 };

	while (rest.n) {
		const char *end = memchr(rest.p, '\n', rest.n);
		struct str line = { rest.p, end ? (size_t)(end - rest.p) : rest.n };
		const char *sign = memchr(line.p, '=', line.n);

		rest.p += line.n + (end != NULL);
		rest.n -= line.n + (end != NULL);
		if (!sign || *line.p == '#' || *line.p == ';')
			continue;
		if (each(r, registry_trim((struct str){ line.p, (size_t)(sign - line.p) }),
			 registry_trim(
				 (struct str){ sign + 1, line.n - (size_t)(sign + 1 - line.p) }),
			 e) < 0)
			return err_wrap(e, "%.100s", path);
	}
	return 0;
}

/* What an earlier place has said holds. */
static void registry_keep(char *to, size_t size, struct str value)
{
	if (!*to && value.n && value.n < size)
		snprintf(to, size, "%.*s", STR_ARG(value));
}

/* ---- npm ------------------------------------------------------------------------------------- */

/* "@scope:registry" is for packages of that scope. */
static int npm_setting(struct registry *r, struct str key, struct str value, struct err *e)
{
	char url[REGISTRY_URL_MAX];
	bool proxy = false;

	if (str_is(key, "registry"))
		registry_keep(r->url, sizeof(r->url), value);
	if (str_is(key, "cafile"))
		registry_keep(r->authority, sizeof(r->authority), value);
	if (!key.n || *key.p != '@' || key.n < 11 || value.n >= sizeof(url) ||
	    !str_is((struct str){ key.p + key.n - 9, 9 }, ":registry"))
		return 0;
	snprintf(url, sizeof(url), "%.*s", STR_ARG(value));
	return registry_add(r, url, &proxy, e) < 0 ||
			       buf_addf(&r->settings, e, "%.*s=%s\n%s", STR_ARG(key), url,
					proxy ? "proxy=" PROXY "\nhttps-proxy=" PROXY "\n" : "") < 0
		     ? -1
		     : 0;
}

static int npm_settings(struct registry *r, const char *home, struct err *e)
{
	const char *const names[] = { "npm_config_registry", "NPM_CONFIG_REGISTRY" };
	char path[4096];
	bool proxy = false;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		registry_keep(r->url, sizeof(r->url), str_of(getenv(names[i])));
	snprintf(path, sizeof(path), "%s/.npmrc", home);
	if (registry_file(getenv("npm_config_userconfig") ?: path, r, npm_setting, e) < 0 ||
	    registry_file("/etc/npmrc", r, npm_setting, e) < 0 ||
	    registry_file("/usr/etc/npmrc", r, npm_setting, e) < 0)
		return -1;
	registry_keep(r->url, sizeof(r->url), STR_LIT("https://registry.npmjs.org/"));
	if (registry_add(r, r->url, &proxy, e) < 0)
		return -1;
	/* Its documents may name it by another address. */
	return buf_addf(&r->settings, e,
			"registry=%s\nreplace-registry-host=always\n"
			"fetch-retries=1\nfetch-retry-mintimeout=1000\n%s%s",
			r->url, proxy ? "proxy=" PROXY "\nhttps-proxy=" PROXY "\n" : "",
			*r->authority ? "cafile=/opt/package/ca.pem\n" : "");
}

/* ---- PyPI ------------------------------------------------------------------------------------ */

static int pip_setting(struct registry *r, struct str key, struct str value, struct err *e)
{
	if (str_is(key, "index-url"))
		registry_keep(r->url, sizeof(r->url), value);
	if (str_is(key, "cert"))
		registry_keep(r->authority, sizeof(r->authority), value);
	return 0;
}

static int pip_settings(struct registry *r, const char *home, struct err *e)
{
	const char *const names[] = { "PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL" };
	const char *const files[] = { ".config/pip/pip.conf", ".pip/pip.conf" };
	char path[4096], files_of[REGISTRY_URL_MAX] = "https://files.pythonhosted.org/";
	bool proxy = false, files_too;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		registry_keep(r->url, sizeof(r->url), str_of(getenv(names[i])));
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", home, files[i]);
		if (registry_file(path, r, pip_setting, e) < 0)
			return -1;
	}
	if (registry_file("/etc/pip.conf", r, pip_setting, e) < 0)
		return -1;
	registry_keep(r->url, sizeof(r->url), STR_LIT("https://pypi.org/simple"));
	files_too = strstr(r->url, "://pypi.org/") != NULL;
	if (registry_add(r, r->url, &proxy, e) < 0 ||
	    (files_too && registry_add(r, files_of, &proxy, e) < 0))
		return -1;
	return buf_addf(&r->settings, e, "[global]\nindex-url = %s\n%s%s", r->url,
			proxy ? "proxy = " PROXY "\n" : "",
			*r->authority ? "cert = /opt/package/ca.pem\n" : "");
}

int registry_read(enum config_package_kind kind, struct registry *ret, struct err *e)
{
	const char *home = getenv("HOME") ?: "";

	*ret = (struct registry){ .settings = BUF_INIT(SETTINGS_MAX) };
	return kind == CONFIG_NPM ? npm_settings(ret, home, e) : pip_settings(ret, home, e);
}

void registry_fini(struct registry *r)
{
	buf_fini(&r->settings);
}
