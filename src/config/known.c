/* Servers that many use (modules/known.json). */
#include "config/advice.h"
#include "config/known.h"
#include "json/document/json.h"

/* Whether a word is the package, with a version or a tag or without, or a path into it. */
static bool known_is(struct str word, struct str package)
{
	const char *at = word.n >= package.n && package.n
			       ? memmem(word.p, word.n, package.p, package.n)
			       : NULL;
	const char *end = at ? at + package.n : NULL;

	return at && (at == word.p || at[-1] == '/') &&
	       (end == word.p + word.n || strchr("@:=/[", *end));
}

static bool known_runs(const struct config_server *s, const struct json_val *packages)
{
	struct json_iter it = json_iter(packages);

	while (json_next(&it)) {
		for (size_t i = 0; i < s->args.n; i++) {
			if (known_is(s->args.p[i], json_str(it.val)))
				return true;
		}
	}
	return false;
}

static int known_strs(const struct json_val *v, struct arena *a, struct field_strs *ret,
		      struct err *e)
{
	struct str *p = arena_array(a, json_len(v), sizeof(*p), e);
	struct json_iter it = json_iter(v);

	while (p && json_next(&it)) {
		struct str s = json_str(it.val);

		p[it.index] = (struct str){ arena_dup(a, s, e), s.n };
		if (!p[it.index].p)
			return -1;
	}
	*ret = (struct field_strs){ p, json_len(v) };
	return p ? 0 : -1;
}

int config_known_find(const struct config_server *s, struct arena *a, struct config_known *ret,
		      struct err *e)
{
	AUTO(json_free) struct json_doc *doc = json_parse(str_of(guest_known), NULL, e);
	struct json_iter it = json_iter(json_root(doc));

	if (!doc)
		return -1;
	while (json_next(&it)) {
		struct str about = json_str(json_get(it.val, "about"));

		if (!s->command.p || !known_runs(s, json_get(it.val, "packages")))
			continue;
		ret->about = (struct str){ arena_dup(a, about, e), about.n };
		return !ret->about.p ||
				       known_strs(json_get(it.val, "network"), a, &ret->network,
						  e) < 0 ||
				       known_strs(json_get(it.val, "secrets"), a, &ret->secrets,
						  e) < 0
			     ? -1
			     : 1;
	}
	return 0;
}
