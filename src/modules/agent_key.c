#include "modules/agent_key.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Whether there is a value, as far as that can be known without reading it. */
static bool key_is_there(const struct config_secret *s, const char *images)
{
	const char *slash = images ? strrchr(images, '/') : NULL;
	char text[PATH_MAX];
	int n;

	if (s->env.p) {
		snprintf(text, sizeof(text), "%.*s", STR_ARG(s->env));
		return getenv(text);
	}
	if (!s->store)
		return true;
	n = snprintf(text, sizeof(text), "%.*s/secrets/%.*s", slash ? (int)(slash - images) : 0,
		     images ? images : "", STR_ARG(s->name));
	return slash && n < (int)sizeof(text) && access(text, F_OK) == 0;
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
