/* Servers that many use (modules/known.json). */
#include "config/advice.h"
#include "config/known.h"
#include "config/package.h"
#include "json/document/json.h"

/* "/…/node_modules/NAME/…" */
static bool known_is_path(struct str word, struct str name)
{
	static const char folder[] = "/node_modules/";
	const char *at = memmem(word.p, word.n, folder, sizeof(folder) - 1);
	size_t left = at ? word.n - (size_t)(at - word.p) - (sizeof(folder) - 1) : 0;

	at += at ? sizeof(folder) - 1 : 0;
	return left > name.n && memcmp(at, name.p, name.n) == 0 && at[name.n] == '/';
}

/* By the package that it runs, or that its program is a file of. */
static bool known_runs(const struct config_server *s, const struct config_package *package,
		       const struct json_val *packages)
{
	struct json_iter it = json_iter(packages);

	while (json_next(&it)) {
		struct str name = json_str(it.val);

		if (package ? str_eq(package->name, name)
			    : s->args.n && known_is_path(s->args.p[0], name))
			return true;
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
	struct config_package package;
	struct err none = ERR_INIT;
	bool runs;

	if (!doc)
		return -1;
	runs = config_package_read(s, &package, &none) > 0;
	while (json_next(&it)) {
		struct str about = json_str(json_get(it.val, "about"));

		if (!s->command.p ||
		    !known_runs(s, runs ? &package : NULL, json_get(it.val, "packages")))
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
