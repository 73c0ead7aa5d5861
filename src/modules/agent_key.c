#include "modules/agent_key.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "net/wire/wire.h"

/* Whether the store has it, and since when. */
static bool key_is_stored(struct str name, const char *images, time_t *ret_since)
{
	const char *slash = images ? strrchr(images, '/') : NULL;
	char path[PATH_MAX];
	struct stat st;
	int n = snprintf(path, sizeof(path), "%.*s/secrets/%.*s", slash ? (int)(slash - images) : 0,
			 images ? images : "", STR_ARG(name));

	if (!slash || n >= (int)sizeof(path) || stat(path, &st) < 0)
		return false;
	if (ret_since)
		*ret_since = st.st_mtime;
	return true;
}

/* Whether there is a value, as far as that can be known without reading it. */
static bool key_is_there(const struct config_secret *s, const char *images)
{
	char text[PATH_MAX];

	if (s->env.p) {
		snprintf(text, sizeof(text), "%.*s", STR_ARG(s->env));
		return getenv(text);
	}
	return !s->store || key_is_stored(s->name, images, NULL);
}

const struct agent_preset_secret *agent_key_find(const struct agent_preset *p,
						 const struct config_file *f, const char *images)
{
	for (size_t i = 0; i < p->secrets.n; i++) {
		const struct config_secret *s = config_secret_bound(f, p->secrets.p[i].name);

		if (s && key_is_there(s, images))
			return &p->secrets.p[i];
	}
	return NULL;
}

void agent_login_name(struct str agent, char ret[AGENT_LOGIN_MAX])
{
	snprintf(ret, AGENT_LOGIN_MAX, "%.*s-login", STR_CUT(agent, CONFIG_SERVER_NAME_MAX));
}

bool agent_login_find(const struct agent_preset *p, const struct config_file *f, const char *images,
		      struct str agent, time_t *ret_since)
{
	char name[AGENT_LOGIN_MAX];
	const struct config_secret *s;

	agent_login_name(agent, name);
	s = p->has_tokens ? config_secret_bound(f, str_of(name)) : NULL;
	return s && s->has_login && key_is_stored(s->name, images, ret_since);
}

bool agent_login_is_marked(struct str text)
{
	return memmem(text.p, text.n, NW_PLACEHOLDER, strlen(NW_PLACEHOLDER));
}

/* Of "https://HOST[:PORT]/...". */
static struct str login_url_host(struct str url)
{
	size_t n = strlen("https://"), end = n;

	while (end < url.n && !strchr("/?#", url.p[end]))
		end++;
	return (struct str){ url.p + n, end - n };
}

int agent_login_hosts(const struct agent_preset *p, struct arena *a, struct field_strs *ret,
		      struct err *e)
{
	const struct agent_preset_tokens *t = &p->tokens;
	struct str *to = arena_array(a, t->hosts.n + t->urls.n, sizeof(*to), e);
	size_t n = 0;

	if (!to)
		return -1;
	for (size_t i = 0; i < t->hosts.n + t->urls.n; i++) {
		struct str host = i < t->hosts.n ? t->hosts.p[i]
						 : login_url_host(t->urls.p[i - t->hosts.n]);
		bool port = memchr(host.p, ':', host.n);
		char rule[CONFIG_TEXT_MAX + 8];

		snprintf(rule, sizeof(rule), "%.*s%s", STR_CUT(host, CONFIG_TEXT_MAX),
			 port ? "" : ":443");
		to[n] = str_of(arena_dup(a, str_of(rule), e));
		if (!to[n++].p)
			return -1;
	}
	*ret = (struct field_strs){ to, n };
	return 0;
}
