/*
 * Which tools of a module may be called: those that say of themselves what they said when they were
 * approved. The first list after the approval of a module is taken as it is, but for tools in which
 * the scan finds something. From then on what is new or another waits for the operator.
 *
 * The row keeps all approved definitions, {"instructions":…,"tools":[…]}, so that a difference can
 * be shown.
 */
#include "code/pin.h"
#include "code/scan.h"
#include "upstream/internal.h"

enum { PINS_MAX = 8 << 20, SCAN_BYTES_MAX = 1 << 20 };

const char *const upstream_pin_names[UPSTREAM_PINS] = {
	[UPSTREAM_PIN_APPROVED] = "approved",
	[UPSTREAM_PIN_NEW] = "new",
	[UPSTREAM_PIN_CHANGED] = "changed",
	[UPSTREAM_PIN_WARNED] = "warned",
};

static const struct json_val *pins_find(const struct json_doc *pins, struct str name)
{
	struct json_iter it = json_iter(json_get(json_root(pins), "tools"));

	while (json_next(&it)) {
		if (str_eq(json_str(json_get(it.val, "name")), name))
			return it.val;
	}
	return NULL;
}

static int pins_digest(const struct upstream_tool *t, char ret[SHA256_HEX], struct err *e)
{
	AUTO(json_free) struct json_doc *doc = json_parse(t->json, NULL, e);

	return doc ? pin_tool(json_root(doc), ret, e) : -1;
}

/* Those that are approved, as they are now. */
static int pins_save(struct upstream *u, struct err *e)
{
	const struct upstream_tools *t = u->tools;
	autobuf struct buf b = BUF_INIT(PINS_MAX);
	struct json_writer w = json_writer(&b);
	char *was = u->pins;

	json_write_object(&w);
	json_write_key(&w, "instructions");
	json_write_str(&w, t->instructions);
	json_write_key(&w, "tools");
	json_write_array(&w);
	for (size_t i = 0; i < t->n; i++) {
		if (t->p[i].pin == UPSTREAM_PIN_APPROVED)
			json_write_raw(&w, t->p[i].json);
	}
	json_write_array_end(&w);
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0)
		return err_wrap(e, "its tools");
	u->pins = buf_take(&b);
	if (grant_write(u, e) < 0) {
		free(u->pins);
		u->pins = was;
		return -1;
	}
	free(was);
	return 0;
}

static int pins_warned(struct upstream_tool *t, struct err *e)
{
	AUTO(arena_free) struct arena *a = arena_new(SCAN_BYTES_MAX);
	AUTO(json_free) struct json_doc *doc = json_parse(t->json, NULL, e);
	struct scan_findings found = { .n = 0 };

	if (!a)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (!doc || scan_tool(json_root(doc), &(struct scan_tools){ .own_n = 0 }, a, &found, e) < 0)
		return -1;
	t->pin = found.n ? UPSTREAM_PIN_WARNED : UPSTREAM_PIN_APPROVED;
	return 0;
}

static int pins_compare(const struct json_doc *pins, struct upstream_tool *t, struct err *e)
{
	const struct json_val *old = pins_find(pins, t->name);
	char was[SHA256_HEX], is[SHA256_HEX];

	t->pin = UPSTREAM_PIN_NEW;
	if (!old)
		return 0;
	if (pin_tool(old, was, e) < 0 || pins_digest(t, is, e) < 0)
		return -1;
	t->pin = strcmp(was, is) == 0 ? UPSTREAM_PIN_APPROVED : UPSTREAM_PIN_CHANGED;
	return 0;
}

int pins_judge(struct upstream *u, struct err *e)
{
	struct upstream_tools *t = u->tools;
	AUTO(json_free)
	struct json_doc *pins = u->pins ? json_parse(str_of(u->pins), NULL, e) : NULL;

	if (u->pins && !pins)
		return err_wrap(e, "the approved tools");
	for (size_t i = 0; i < t->n; i++) {
		if ((pins ? pins_compare(pins, &t->p[i], e) : pins_warned(&t->p[i], e)) < 0)
			return -1;
	}
	t->told = !pins ||
		  str_eq(json_str(json_get(json_root(pins), "instructions")), t->instructions);
	return pins ? 0 : pins_save(u, e);
}

int pins_approve(struct upstream *u, struct err *e)
{
	for (size_t i = 0; i < u->tools->n; i++)
		u->tools->p[i].pin = UPSTREAM_PIN_APPROVED;
	u->tools->told = true;
	return pins_save(u, e);
}

static int pins_order(const void *a, const void *b)
{
	return strcmp(a, b);
}

int pins_seen(struct upstream_tools *t, struct err *e)
{
	char(*all)[SHA256_HEX] = arena_array(t->arena, t->n + 1, sizeof(*all), e);

	if (!all || pin_instructions(t->instructions, all[t->n], e) < 0)
		return -1;
	for (size_t i = 0; i < t->n; i++) {
		if (pins_digest(&t->p[i], all[i], e) < 0)
			return -1;
	}
	qsort(all, t->n, sizeof(*all), pins_order);
	sha256_hex((struct str){ all[0], (t->n + 1) * sizeof(*all) }, t->seen);
	return 0;
}
