#include "cli/common/table.h"

#include <stdint.h>
#include <stdio.h>

#include "cli/common/safe.h"

struct table {
	size_t columns;
	bool right[TABLE_COLUMNS_MAX];
	/* Writes `cells`: each ends with a NUL, which no escaped text has. */
	FILE *out;
	char *cells;
	size_t n;
};

struct table *table_new(const char *const *headings, size_t n, struct err *e)
{
	AUTO(table_free) struct table *t = calloc(1, sizeof(*t));

	if (t)
		t->out = open_memstream(&t->cells, &t->n);
	if (!t || !t->out) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	t->columns = n;
	for (size_t i = 0; i < n; i++) {
		t->right[i] = headings[i][0] == '>';
		table_cell(t, "%s", headings[i] + t->right[i]);
	}
	return take_ptr(t);
}

void table_free(struct table *t)
{
	if (!t)
		return;
	if (t->out)
		fclose(t->out);
	free(t->cells);
	free(t);
}

void table_short(struct table *t, struct str s, size_t max)
{
	safe_short(t->out, s.n ? s : STR_LIT("-"), max);
	fputc('\0', t->out);
}

void table_str(struct table *t, struct str s)
{
	table_short(t, s, SIZE_MAX);
}

void table_number(struct table *t, const struct json_val *v, double unit, int digits)
{
	if (json_type(v) == JSON_INT || json_type(v) == JSON_REAL)
		table_cell(t, "%.*f", digits, json_real(v) / unit);
	else
		table_cell(t, "-");
}

void table_cell(struct table *t, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(t->out, fmt, args);
	va_end(args);
	fputc('\0', t->out);
}

/* Characters, where each takes one column. */
static size_t table_width(const char *cell)
{
	size_t n = 0;

	for (; *cell; cell++)
		n += ((unsigned char)*cell & 0xc0) != 0x80;
	return n;
}

void table_print(struct table *t)
{
	size_t widest[TABLE_COLUMNS_MAX] = { 0 }, i = 0;

	fflush(t->out);
	for (const char *c = t->cells; c < t->cells + t->n; c += strlen(c) + 1, i++) {
		size_t width = table_width(c), *max = &widest[i % t->columns];

		*max = width > *max ? width : *max;
	}
	i = 0;
	for (const char *c = t->cells; c < t->cells + t->n; c += strlen(c) + 1) {
		int pad = (int)(widest[i] - table_width(c));
		bool last = i + 1 == t->columns;

		printf("%*s%s%*s", t->right[i] ? pad : 0, "", c, t->right[i] || last ? 0 : pad, "");
		fputs(last ? "\n" : "  ", stdout);
		i = last ? 0 : i + 1;
	}
}
