/* What is in a journal of `holt ws apply`: fields that end in NUL, since paths may have any other
 * byte. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#include "cli/ws/apply.h"

#define HEAD "holt apply 1"
#define END "end"

enum { OPS_MAX = 2 * APPLY_ENTRIES_MAX };

void apply_plan_fini(struct apply_plan *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->ops[i].path);
	free(p->ops);
	*p = (struct apply_plan){ 0 };
}

struct apply_op *apply_plan_add(struct apply_plan *p, char kind, const char *path, struct err *e)
{
	struct apply_op *ops = p->ops;

	if ((p->n & (p->n - 1)) == 0) /* full at each power of two */
		ops = realloc(p->ops, (p->n ? 2 * p->n : 1) * sizeof(*ops));
	if (ops)
		p->ops = ops;
	if (ops)
		ops[p->n] = (struct apply_op){ .kind = kind, .path = strdup(path) };
	if (!ops || !ops[p->n].path) {
		err_sys(e, ENOMEM, "list the changes");
		return NULL;
	}
	return &ops[p->n++];
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_state(FILE *to, const struct apply_state *s)
{
	fprintf(to, "%c%03o%s%c", s->type, s->mode, s->hash, 0);
}

void apply_plan_write(FILE *to, const struct apply_plan *p)
{
	fprintf(to, HEAD "%c%s%c%d%c%s%c%s%c%s%c%s%c", 0, p->id, 0, p->undo, 0, p->to.workspace, 0,
		p->to.id, 0, p->base.workspace, 0, p->base.id, 0);
	for (size_t i = 0; i < p->n; i++) {
		const struct apply_op *op = &p->ops[i];

		fprintf(to, "%c%s%c%u%c%ju%c", op->kind, op->path, 0, op->n, 0,
			(uintmax_t)op->staged, 0);
		put_state(to, &op->old);
		put_state(to, &op->new);
	}
	fprintf(to, END "%c", 0);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reader {
	FILE *from;
	char *text; /* the last field */
	size_t cap;
};

static const char *get(struct reader *r)
{
	ssize_t n = getdelim(&r->text, &r->cap, '\0', r->from);

	return n > 0 && r->text[n - 1] == '\0' ? r->text : NULL;
}

static bool get_text(struct reader *r, char *ret, size_t size)
{
	const char *text = get(r);

	return text && snprintf(ret, size, "%s", text) < (int)size;
}

/* In the one form that is written. */
static bool get_number(struct reader *r, uintmax_t max, uintmax_t *ret)
{
	const char *text = get(r);
	char *end;

	if (!text || *text < '0' || *text > '9' || (*text == '0' && text[1]))
		return false;
	errno = 0;
	*ret = strtoumax(text, &end, 10);
	return !*end && errno == 0 && *ret <= max;
}

static bool get_state(struct reader *r, struct apply_state *ret)
{
	const char *text = get(r);

	if (!text || strlen(text) < 4 || !strchr("-fldo", *text))
		return false;
	ret->type = *text++;
	ret->mode = 0;
	for (int i = 0; i < 3; i++, text++) {
		if (*text < '0' || *text > '7')
			return false;
		ret->mode = ret->mode * 8 + (uint32_t)(*text - '0');
	}
	return snprintf(ret->hash, sizeof(ret->hash), "%s", text) < (int)sizeof(ret->hash);
}

static bool get_head(struct reader *r, struct apply_plan *p)
{
	uintmax_t undo;

	if (!str_is(str_of(get(r)), HEAD) || !get_text(r, p->id, sizeof(p->id)) ||
	    !get_number(r, 1, &undo) || !get_text(r, p->to.workspace, sizeof(p->to.workspace)) ||
	    !get_text(r, p->to.id, sizeof(p->to.id)) ||
	    !get_text(r, p->base.workspace, sizeof(p->base.workspace)) ||
	    !get_text(r, p->base.id, sizeof(p->base.id)))
		return false;
	p->undo = undo != 0;
	return true;
}

static bool get_ops(struct reader *r, struct apply_plan *p, struct err *e)
{
	const char *text;

	while ((text = get(r)) && strcmp(text, END) != 0) {
		bool fits = *text && strchr("RXMACP", *text) && p->n < OPS_MAX;
		struct apply_op *op = fits ? apply_plan_add(p, *text, text + 1, e) : NULL;
		uintmax_t n, staged;

		if (!op || !get_number(r, UINT_MAX, &n) || !get_number(r, UINTMAX_MAX, &staged) ||
		    !get_state(r, &op->old) || !get_state(r, &op->new))
			return false;
		op->n = (unsigned)n;
		op->staged = (ino_t)staged;
	}
	return text && fgetc(r->from) == EOF;
}

bool apply_plan_read(FILE *from, bool heads, struct apply_plan *ret, struct err *e)
{
	struct reader r = { .from = from };
	bool fine = get_head(&r, ret) && (heads || get_ops(&r, ret, e));

	free(r.text);
	return fine;
}
