/* A preset of an agent: the input is one. What is read is bounded, and no path of it leaves its
 * home or its state. */
#include <string.h>

#include "config/agent_preset.h"
#include "fuzz.h"

enum { TEXT_BYTES = 4096, HAS_MAX = 1 << 20 };

static void check_path(struct str path, const struct field_strs *folders)
{
	bool below = !folders;

	MUST(path.n > 2 && memcmp(path.p, "~/", 2) == 0 && path.p[path.n - 1] != '/');
	MUST(!memmem(path.p, path.n, "/../", 4) && !memmem(path.p, path.n, "//", 2));
	MUST(memcmp(path.p + path.n - 2, "/.", 2) != 0);
	MUST(memcmp(path.p + path.n - 3, "/..", 3) != 0);
	for (size_t i = 0; folders && i < folders->n; i++)
		below |= path.n > folders->p[i].n &&
			 memcmp(path.p, folders->p[i].p, folders->p[i].n) == 0;
	MUST(below);
}

static void check(const struct agent_preset *p)
{
	MUST(p->run.n || p->acp.n);
	for (size_t i = 0; i < p->state.n; i++)
		check_path(p->state.p[i], NULL);
	for (size_t i = 0; i < p->credentials.n; i++)
		check_path(p->credentials.p[i], &p->state);
	for (size_t i = 0; i < p->settings.n; i++)
		check_path(p->settings.p[i].name, &p->state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct err e = ERR_INIT;
	struct agent_preset preset;
	struct json_doc *doc;
	struct arena *a;

	if (n > TEXT_BYTES)
		return 0;
	a = arena_new(HAS_MAX);
	doc = json_parse((struct str){ (const char *)data, n }, NULL, &e);
	if (!doc)
		MUST(a && e.code != ERR_BUG);
	else if (agent_preset_decode(json_root(doc), STR_LIT("own"), a, &preset, &e) < 0)
		MUST(e.code != ERR_BUG && e.msg[0]);
	else
		check(&preset);
	json_free(doc);
	arena_free(a);
	return 0;
}
