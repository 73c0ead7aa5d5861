#include "cli/common/option.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

#include "base/str.h"
#include "json/document/near.h"

/* ---- numbers ------------------------------------------------------------------------------- */

/* Parses a decimal number as thousandths. *ret_end: what follows it. -1 if there is none, or too
 * large. */
static int64_t read_milli(const char *s, const char **ret_rest)
{
	int64_t v = 0;
	int places = 3;

	if (!isdigit((unsigned char)*s))
		return -1;
	for (; isdigit((unsigned char)*s); s++) {
		if (v > INT64_MAX / 10000 - 10)
			return -1;
		v = v * 10 + (*s - '0');
	}
	v *= 1000;
	if (*s == '.') {
		int64_t unit = 100;

		for (s++; isdigit((unsigned char)*s) && places > 0; s++, places--, unit /= 10)
			v += unit * (*s - '0');
	}
	*ret_rest = s;
	return v;
}

struct unit {
	const char *names; /* each letter stands for it */
	uint64_t factor;
};

static const struct unit sizes[] = {
	{ "kK", 1024 },
	{ "mM", 1024ull * 1024 },
	{ "gG", 1024ull << 20 },
	{ "tT", 1024ull << 30 },
};
static const struct unit times[] = { { "s", 1 }, { "m", 60 }, { "h", 3600 }, { "d", 86400 } };

/* The number times its unit's factor, in thousandths if keep_milli. False if it is no number. */
static bool read_scaled(const char *s, const struct unit *units, size_t n, uint64_t plain,
			bool keep_milli, uint64_t *ret)
{
	const char *rest;
	int64_t milli = read_milli(s, &rest);
	uint64_t factor = plain, v;

	if (milli < 0)
		return false;
	for (size_t i = 0; *rest && i < n; i++) {
		if (!strchr(units[i].names, *rest))
			continue;
		factor = units[i].factor;
		rest++;
		/* "MiB" and "MB" mean the same here: people write both. */
		if (units == sizes &&
		    (strcmp(rest, "iB") == 0 || strcmp(rest, "B") == 0 || strcmp(rest, "i") == 0))
			rest = "";
		break;
	}
	if (*rest || __builtin_mul_overflow((uint64_t)milli, factor, &v))
		return false;
	*ret = keep_milli ? v : v / 1000;
	return true;
}

static bool read_number(const struct option_row *o, const char *s, uint64_t *ret)
{
	switch (o->kind) {
	case OPTION_SIZE:
		return read_scaled(s, sizes, ARRAY_LEN(sizes), 1024 * 1024, false, ret);
	case OPTION_SECONDS:
		return read_scaled(s, times, ARRAY_LEN(times), 1, true, ret);
	case OPTION_MILLI:
		return read_scaled(s, NULL, 0, 1, true, ret);
	default:
		return !strchr(s, '.') && read_scaled(s, NULL, 0, 1, false, ret);
	}
}

bool option_size(const char *text, uint64_t *ret)
{
	return read_scaled(text, sizes, ARRAY_LEN(sizes), 1024 * 1024, false, ret);
}

enum { DAY_MS = 24 * 3600 * 1000 };

/* How a stored number is written, for messages. */
static void show_number(const struct option_row *o, uint64_t v, char *to, size_t size)
{
	if (o->kind == OPTION_SIZE)
		snprintf(to, size, "%lluM", (unsigned long long)(v >> 20));
	else if (o->kind == OPTION_SECONDS && v >= DAY_MS && v % DAY_MS == 0)
		snprintf(to, size, "%llud", (unsigned long long)(v / DAY_MS));
	else if (o->kind == OPTION_SECONDS || o->kind == OPTION_MILLI)
		snprintf(to, size, "%g", (double)v / 1000);
	else
		snprintf(to, size, "%llu", (unsigned long long)v);
}

static const char *examples(enum option_kind kind)
{
	switch (kind) {
	case OPTION_SIZE:
		return "a size such as 512M or 2G";
	case OPTION_SECONDS:
		return "seconds such as 30 or 0.5, or a time such as 5m";
	case OPTION_MILLI:
		return "a number such as 0.5 or 2";
	default:
		return "a whole number";
	}
}

static int set_number(const struct option_row *o, const char *shown, const char *text, void *at,
		      struct err *e)
{
	uint64_t v, max = o->max;
	char low[32], high[32];

	if (max == 0)
		max = o->kind == OPTION_COUNT || o->kind == OPTION_MILLI ? UINT32_MAX : UINT64_MAX;
	if (!read_number(o, text, &v))
		return err_set(e, ERR_INVALID, "%s takes %s, not '%.40s'", shown, examples(o->kind),
			       text);
	if (v < o->min || v > max) {
		show_number(o, o->min, low, sizeof(low));
		if (!o->max && v < o->min)
			return err_set(e, ERR_INVALID, "%s takes at least %s, not %.40s", shown,
				       low, text);
		show_number(o, max, high, sizeof(high));
		return err_set(e, ERR_INVALID, "%s takes from %s to %s, not %.40s", shown, low,
			       high, text);
	}
	if (o->kind == OPTION_COUNT || o->kind == OPTION_MILLI)
		*(uint32_t *)at = (uint32_t)v;
	else
		*(uint64_t *)at = v;
	return 0;
}

/* ---- words ----------------------------------------------------------------------------------- */

/* Its place among words, from 1; 0: it is none of them. */
static uint32_t choice_find(const char *words, const char *text)
{
	for (uint32_t i = 1; words; i++) {
		size_t n = strcspn(words, "|");

		if (strlen(text) == n && strncmp(words, text, n) == 0)
			return i;
		words = words[n] ? words + n + 1 : NULL;
	}
	return 0;
}

static int set_choice(const struct option_row *o, const char *shown, const char *text, uint32_t *at,
		      struct err *e)
{
	uint32_t found = choice_find(o->arg, text);

	if (!found)
		found = choice_find(o->same, text);
	if (!found)
		return err_set(e, ERR_INVALID, "%s takes %s, not '%.40s'", shown, o->arg, text);
	*at = found;
	return 0;
}

/* ---- one option ---------------------------------------------------------------------------- */

/* shown: how the user wrote it. text: its value, NULL for a flag. */
static int set(const struct option_row *o, const char *shown, const char *text, void *ret,
	       struct err *e)
{
	void *at = (char *)ret + o->at;
	struct option_list *list = at;

	switch (o->kind) {
	case OPTION_FLAG:
		*(bool *)at = true;
		return 0;
	case OPTION_TEXT:
		*(const char **)at = text;
		return 0;
	case OPTION_LIST:
		if (list->n == OPTION_LIST_MAX)
			return err_set(e, ERR_INVALID, "%s: at most %d times", shown,
				       OPTION_LIST_MAX);
		list->p[list->n++] = text;
		return 0;
	case OPTION_CHOICE:
		return set_choice(o, shown, text, at, e);
	default:
		return set_number(o, shown, text, at, e);
	}
}

static const char *row_name(const void *of, size_t i)
{
	const struct option_table *t = of;

	return t->rows[i].name;
}

static int option_refuse(const struct option_table *t, const char *word, size_t n, struct err *e)
{
	char name[NEAR_MAX + 1];
	const char *meant;

	snprintf(name, sizeof(name), "%.*s", (int)(n < NEAR_MAX ? n : NEAR_MAX), word);
	meant = option_nearest(name, row_name, t, t->n);
	if (meant)
		return err_set(e, ERR_INVALID, "there is no option --%s; did you mean --%s?", name,
			       meant);
	return err_set(e, ERR_INVALID, "there is no option --%s", name);
}

static int refuse_other(const struct option_row *o, const char *shown, struct err *e)
{
	return err_set(e, ERR_INVALID, "there is no option %s: %s", shown, o->doc);
}

/* Moves *at to the word behind it, which is o's value. An option of the table is none, and `--` is
 * not: its value was forgotten. Written as --name=VALUE it may be anything. */
static int take_value(const struct option_table *t, int argc, char **argv, int *at,
		      const struct option_row *o, const char *shown, struct err *e)
{
	const char *next = *at + 1 < argc ? argv[*at + 1] : "--";
	bool found = false;

	for (size_t i = 0; i < t->n && next[0] == '-' && next[1] == '-' && !found; i++) {
		size_t n = strlen(t->rows[i].name);

		found = !next[2] || (strncmp(next + 2, t->rows[i].name, n) == 0 &&
				     (next[2 + n] == '\0' || next[2 + n] == '='));
	}
	if (found)
		return err_set(e, ERR_INVALID, "%s wants a value: %s", shown, o->arg);
	++*at;
	return 0;
}

/* Parses --name, --name=VALUE or --name VALUE at *at, and moves *at to its last word. */
static int parse_long(const struct option_table *t, int argc, char **argv, int *at, void *ret,
		      struct err *e)
{
	const char *word = argv[*at] + 2, *value = strchr(word, '=');
	size_t n = value ? (size_t)(value - word) : strlen(word);
	char shown[64];

	for (size_t i = 0; i < t->n; i++) {
		const struct option_row *o = &t->rows[i];

		if (strlen(o->name) != n || strncmp(o->name, word, n) != 0)
			continue;
		snprintf(shown, sizeof(shown), "--%s", o->name);
		if (o->kind == OPTION_ELSEWHERE)
			return refuse_other(o, shown, e);
		if (o->kind == OPTION_FLAG && value)
			return err_set(e, ERR_INVALID, "%s takes no value", shown);
		if (o->kind != OPTION_FLAG && !value &&
		    take_value(t, argc, argv, at, o, shown, e) < 0)
			return -1;
		return set(o, shown, value ? value + 1 : argv[*at], ret, e);
	}
	return option_refuse(t, word, n, e);
}

static const struct option_row *by_letter(const struct option_table *t, char letter)
{
	for (size_t i = 0; i < t->n; i++) {
		if (t->rows[i].letter == letter)
			return &t->rows[i];
	}
	return NULL;
}

/* Parses -a, -abVALUE or -a VALUE at *at, and moves *at to its last word. */
static int parse_short(const struct option_table *t, int argc, char **argv, int *at, void *ret,
		       struct err *e)
{
	for (const char *p = argv[*at] + 1; *p; p++) {
		const struct option_row *o = by_letter(t, *p);
		const char shown[] = { '-', *p, '\0' };

		if (!o)
			return err_set(e, ERR_INVALID, "there is no option -%c", *p);
		if (o->kind == OPTION_ELSEWHERE)
			return refuse_other(o, shown, e);
		if (o->kind == OPTION_FLAG) {
			if (set(o, shown, NULL, ret, e) < 0)
				return -1;
			continue;
		}
		if (!p[1] && take_value(t, argc, argv, at, o, shown, e) < 0)
			return -1;
		return set(o, shown, p[1] ? p + 1 : argv[*at], ret, e);
	}
	return 0;
}

static int from_environment(const struct option_table *t, void *ret, struct err *e)
{
	for (size_t i = 0; i < t->n; i++) {
		const char *text = t->rows[i].env ? getenv(t->rows[i].env) : NULL;

		if (text && *text && set(&t->rows[i], t->rows[i].env, text, ret, e) < 0)
			return -1;
	}
	return 0;
}

/* Moves argv[at..end) to `first`, before what is there. */
static void move_front(char **argv, int first, int at, int end)
{
	for (; at < end; at++, first++) {
		char *word = argv[at];

		memmove(&argv[first + 1], &argv[first], sizeof(*argv) * (size_t)(at - first));
		argv[first] = word;
	}
}

static bool is_option(const char *word)
{
	return word[0] == '-' && word[1];
}

static int parse_mixed(const struct option_table *t, int argc, char **argv, void *ret,
		       struct err *e)
{
	int first = 1, r = 0; /* the first operand */
	int operands = 0;

	for (int at = 1; at < argc && strcmp(argv[at], "--") != 0; at++) {
		int from = at;

		if (!is_option(argv[at])) {
			if (t->program_at && operands++ == t->program_at)
				break;
			continue;
		}
		if (argv[at][1] == '-')
			r = parse_long(t, argc, argv, &at, ret, e);
		else
			r = parse_short(t, argc, argv, &at, ret, e);
		if (r < 0)
			return -1;
		move_front(argv, first, from, at + 1);
		first += at + 1 - from;
	}
	return first;
}

int option_parse(const struct option_table *t, int argc, char **argv, void *ret, struct err *e)
{
	bool dashes = false;
	int at = 1, r = from_environment(t, ret, e);

	if (t->mixed)
		return r < 0 ? -1 : parse_mixed(t, argc, argv, ret, e);
	for (; r == 0 && !dashes && at < argc && is_option(argv[at]); at++) {
		if (strcmp(argv[at], "--") == 0)
			dashes = true;
		else if (argv[at][1] == '-')
			r = parse_long(t, argc, argv, &at, ret, e);
		else
			r = parse_short(t, argc, argv, &at, ret, e);
	}
	return r < 0 ? -1 : at;
}

/* ---- back into words ------------------------------------------------------------------------- */

struct str option_choice(const struct option_row *o, uint32_t number)
{
	const char *word = o->arg;

	for (; number > 1; number--)
		word += strcspn(word, "|") + 1;
	return (struct str){ word, strcspn(word, "|") };
}

char *option_word(const struct option_row *o, const void *options, size_t k, struct arena *a,
		  struct err *e)
{
	const void *at = (const char *)options + o->at;
	const struct option_list *list = at;
	const bool wide = o->kind == OPTION_SIZE || o->kind == OPTION_SECONDS;
	const char *text = NULL;
	unsigned long long n;

	if (o->kind == OPTION_LIST || o->kind == OPTION_TEXT) {
		if (o->kind == OPTION_LIST)
			text = k < list->n ? list->p[k] : NULL;
		else if (k == 0)
			text = *(const char *const *)at;
		return text ? arena_printf(a, e, "--%s=%s", o->name, text) : NULL;
	}
	n = wide		   ? *(const uint64_t *)at
	  : o->kind == OPTION_FLAG ? *(const bool *)at
				   : *(const uint32_t *)at;
	if (k > 0 || n == 0)
		return NULL;
	switch (o->kind) {
	case OPTION_FLAG:
		return arena_printf(a, e, "--%s", o->name);
	case OPTION_CHOICE:
		return arena_printf(a, e, "--%s=%.*s", o->name,
				    STR_ARG(option_choice(o, (uint32_t)n)));
	case OPTION_SIZE:
		return arena_printf(a, e, "--%s=%lluK", o->name, (n + 1023) / 1024);
	case OPTION_COUNT:
		return arena_printf(a, e, "--%s=%llu", o->name, n);
	default:
		return arena_printf(a, e, "--%s=%llu.%03llu", o->name, n / 1000, n % 1000);
	}
}

/* ---- help ---------------------------------------------------------------------------------- */

enum { HELP_INDENT = 28, HELP_WIDTH = 80 };

/* Prints text from the column HELP_INDENT, in lines of HELP_WIDTH. */
static void print_wrapped(FILE *out, const char *text)
{
	size_t column = HELP_INDENT;

	while (*text) {
		size_t n = strcspn(text, " ");

		if (column > HELP_INDENT && column + 1 + n > HELP_WIDTH) {
			fprintf(out, "\n%*s", HELP_INDENT, "");
			column = HELP_INDENT;
		} else if (column > HELP_INDENT) {
			fputc(' ', out);
			column++;
		}
		fprintf(out, "%.*s", (int)n, text);
		column += n;
		text += n + strspn(text + n, " ");
	}
	fputc('\n', out);
}

static void option_print_row(const struct option_row *o, FILE *out)
{
	char head[96], doc[320];
	int n = snprintf(head, sizeof(head), "  %c%c%s --%s%s%s", o->letter ? '-' : ' ',
			 o->letter ? o->letter : ' ', o->letter ? "," : " ", o->name,
			 o->arg ? " " : "", o->arg ? o->arg : "");

	fprintf(out, "%-*s", HELP_INDENT, head);
	if (n >= HELP_INDENT)
		fprintf(out, "\n%*s", HELP_INDENT, "");
	snprintf(doc, sizeof(doc), "%s%s%s%s", o->doc, o->env ? " ($" : "", o->env ? o->env : "",
		 o->env ? ")" : "");
	print_wrapped(out, doc);
}

void option_help(const struct option_table *t, FILE *out)
{
	for (size_t i = 0; i < t->n; i++)
		option_print_row(&t->rows[i], out);
}

const char *option_nearest(const char *word, const char *(*name_at)(const void *of, size_t i),
			   const void *of, size_t n)
{
	unsigned best = near_enough(str_of(word));
	const char *meant = NULL;

	for (size_t i = 0; i < n; i++) {
		unsigned d = near_distance(str_of(word), str_of(name_at(of, i)));

		if (d <= best && (!meant || d < best)) {
			best = d;
			meant = name_at(of, i);
		}
	}
	return meant;
}
