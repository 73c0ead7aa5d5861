/* Arguments of programs, as they may be shown: as the operator's file has them, but for secrets. */
#include "config/variables.h"
#include "op/module/module.h"

enum { SHOWN_MAX = 4 * CONFIG_VALUE_MAX };

/* What stands in front decides, too: "--token " before a value, "--token=" and "TOKEN=" before a
 * default. */
static int args_default(const struct module_args *a, struct str before, const struct buf *so_far,
			const struct config_part *part, struct str *ret, struct err *e)
{
	autobuf struct buf around = BUF_INIT(SHOWN_MAX), named = BUF_INIT(SHOWN_MAX);

	if (buf_addf(&around, e, "%.*s%.*s", STR_ARG(before), STR_ARG(buf_str(so_far))) < 0 ||
	    buf_addf(&named, e, "%.*s=", STR_ARG(part->text)) < 0)
		return -1;
	*ret = a->redact(a->data, &(struct redact_part){ .before = buf_str(&named),
							 .text = part->otherwise });
	if (str_eq(*ret, part->otherwise))
		*ret = a->redact(a->data, &(struct redact_part){ .before = buf_str(&around),
								 .text = part->otherwise });
	return 0;
}

/* Its variables, with what may be shown of their defaults. */
static int args_one(const struct module_args *a, struct str before, struct str text, struct buf *to,
		    struct err *e)
{
	struct str rest = text;
	struct config_part part;
	int more;

	for (const char *at = rest.p; (more = config_part_next(&rest, &part, e)) > 0; at = rest.p) {
		struct str shown = part.otherwise;
		const char *from = at;

		if (shown.n) {
			if (args_default(a, before, to, &part, &shown, e) < 0 ||
			    buf_add(to, at, (size_t)(part.otherwise.p - at), e) < 0 ||
			    buf_add(to, shown.p, shown.n, e) < 0)
				return -1;
			from = part.otherwise.p + part.otherwise.n;
		}
		if (buf_add(to, from, (size_t)(rest.p - from), e) < 0)
			return -1;
	}
	return more;
}

int module_args_show(const struct module_args *a, const struct field_strs *from,
		     struct arena *arena, struct field_strs *ret, struct err *e)
{
	struct str *p = arena_array(arena, from->n, sizeof(*p), e);

	for (size_t i = 0; p && i < from->n; i++) {
		autobuf struct buf before = BUF_INIT(SHOWN_MAX), text = BUF_INIT(SHOWN_MAX);
		struct str shown;

		if ((i > 0 && buf_addf(&before, e, "%.*s ", STR_ARG(from->p[i - 1])) < 0) ||
		    args_one(a, buf_str(&before), from->p[i], &text, e) < 0)
			return -1;
		shown = a->redact(a->data, &(struct redact_part){ .before = buf_str(&before),
								  .text = buf_str(&text) });
		p[i] = (struct str){ arena_dup(arena, shown, e), shown.n };
		if (!p[i].p)
			return -1;
	}
	*ret = (struct field_strs){ p, from->n };
	return p ? 0 : -1;
}
