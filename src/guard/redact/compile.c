/* Compiles the table of patterns, when Holt is built and where that can't be used. */
#include <hs/hs.h>
#include <stdlib.h>

#include "guard/redact/internal.h"

/* Where a match begins is told by its end. */
static int width_check(const struct pattern *p, struct err *e)
{
	hs_expr_info_t *info = NULL;
	hs_compile_error_t *why = NULL;
	int rc = 0;

	if (p->width == 0)
		return 0;
	if (hs_expression_info(p->regex, 0, &info, &why) != HS_SUCCESS ||
	    info->min_width != p->width || info->max_width != p->width)
		rc = err_set(e, ERR_BUG, "%s matches %u to %u bytes, not %u", p->regex,
			     info ? info->min_width : 0, info ? info->max_width : 0, p->width);
	hs_free_compile_error(why);
	free(info);
	return rc;
}

int patterns_compile(struct hs_database **ret, struct err *e)
{
	const hs_platform_info_t any = { 0 };
	const char **texts = calloc(pattern_count, sizeof(*texts));
	unsigned *numbers = calloc(2 * pattern_count, sizeof(*numbers));
	hs_compile_error_t *why = NULL;
	int rc = texts && numbers ? 0 : err_set(e, ERR_LIMIT, "out of memory");

	for (unsigned i = 0; rc == 0 && i < pattern_count; i++) {
		rc = width_check(&pattern_table[i], e);
		texts[i] = pattern_table[i].regex;
		numbers[i] = pattern_table[i].any_case ? HS_FLAG_CASELESS : 0;
		numbers[pattern_count + i] = i;
	}
	if (rc == 0 &&
	    hs_compile_multi(texts, numbers, numbers + pattern_count, (unsigned)pattern_count,
			     HS_MODE_BLOCK, &any, ret, &why) != HS_SUCCESS)
		rc = err_set(e, ERR_BUG, "pattern %d: %.150s", why ? why->expression : -1,
			     why ? why->message : "?");
	hs_free_compile_error(why);
	free(texts);
	free(numbers);
	return rc;
}
