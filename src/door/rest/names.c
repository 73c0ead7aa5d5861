#include "door/rest/names.h"

#include "base/id.h"
#include "hub/sandbox/idempotent.h"
#include "hub/sandbox/life.h"

int api_names(struct call *c, struct str id, const struct field_strs *ids, size_t n,
	      struct api_names *ret, struct err *e)
{
	char made[ID_MAX];

	ret->n = ids ? ids->n : n;
	for (size_t i = 0; i < ret->n; i++) {
		char *copy;

		if (ids || id.p) {
			ret->p[i] = ids ? ids->p[i] : id;
			continue;
		}
		id_make(made, "sbx");
		copy = arena_dup(call_arena(c), str_of(made), e);
		if (!copy)
			return -1;
		ret->p[i] = str_of(copy);
	}
	return 0;
}

/* "a b c" */
static int plan_of(const struct api_names *names, struct buf *to, struct err *e)
{
	for (size_t i = 0; i < names->n; i++) {
		if (buf_addf(to, e, "%s%.*s", i ? " " : "", STR_ARG(names->p[i])) < 0)
			return -1;
	}
	return 0;
}

static void take_plan(struct str plan, struct api_names *names)
{
	for (size_t i = 0; i < names->n; i++) {
		const char *space = memchr(plan.p, ' ', plan.n);
		size_t length = space ? (size_t)(space - plan.p) : plan.n;

		names->p[i] = (struct str){ plan.p, length };
		plan.p += length + (space != NULL);
		plan.n -= length + (space != NULL);
	}
}

/* Made by a request that was cut off, so by an earlier hub: all of them, as they are all or none. */
static bool made_before(struct call *c, const struct api_names *names, struct life **ret)
{
	struct err e;

	for (size_t i = 0; i < names->n; i++) {
		struct life_info info = { .adopted = false };

		ret[i] = call_life(c, names->p[i], &e);
		if (ret[i])
			life_info(ret[i], &info);
		if (!info.adopted)
			return false;
	}
	return true;
}

enum once api_names_once(struct call *c, const struct once_header *h, struct api_names *names,
			 struct life *made[API_NAMES_MAX])
{
	autobuf struct buf text = BUF_INIT(IDEMPOTENT_PLAN_MAX);
	struct err e = ERR_INIT;
	enum once once;
	struct str plan;

	if (plan_of(names, &text, &e) < 0) {
		call_fail(c, &e);
		return ONCE_OVER;
	}
	plan = buf_str(&text);
	once = once_begin(c, h, &plan);
	if (once != ONCE_AGAIN)
		return once;
	take_plan(plan, names);
	return made_before(c, names, made) ? ONCE_AGAIN : ONCE_NEW;
}
