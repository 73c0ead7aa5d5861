#include "unit.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/mem.h"
#include "guard/redact/internal.h"

static uint64_t seed = 1;

unsigned unit_below(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 33) % n;
}

void unit_add(struct unit *u, const char *p, size_t n)
{
	n = n < sizeof(u->text) - u->n ? n : sizeof(u->text) - u->n;
	memcpy(u->text + u->n, p, n);
	u->n += n;
}

/* One character of [...] at p, which is moved behind it. */
static char sample_set(const char **p)
{
	const char *at = *p + 1;
	bool no = *at == '^';
	char c = *(at += no) == '\\' ? *++at : *at;

	for (*p = at + 1; **p != ']'; *p += 1 + (**p == '\\'))
		;
	*p += 1;
	return no ? 'q' : c;
}

/* What an expression of the table matches, as short as it goes. Sets give their first character,
 * groups their first branch. */
static void sample(struct unit *u, const char *p)
{
	while (*p) {
		char c = *p;
		unsigned long times = 1;

		if (!strncmp(p, "(?:", 3)) {
			p += 3;
			continue;
		}
		if (c == '|') {
			p = strchr(p, ')');
			continue;
		}
		if (c == ')' || c == '?' || c == '+') {
			p++;
			continue;
		}
		if (c == '[')
			c = sample_set(&p);
		else if (c == '\\' && p[1] == 's')
			c = ' ', p += 2;
		else
			p += 1 + (c == '\\'), c = p[-1];
		if (*p == '{')
			times = strtoul(p + 1, (char **)&p, 10), p = strchr(p, '}') + 1;
		else if (*p == '*')
			times = 0, p++;
		for (; times > 0; times--)
			unit_add(u, &c, 1);
	}
}

static const char *const separators[] = {
	"=", ":", ": ", " = ", ":=", "=>", "='", "=\"", "\":\"", "\\\":\\\"", " ", "'] = b'",
};
static const char *const values[] = {
	"",    "$",    "${", "$(", "{{",    "f(", "\xff", "\xc3\xa9", "<",     "[",
	"[]",  "%",    "\\", "-",  "xxx",   "a ", "a1, ", "x\n",      "to do", "todo",
	"://", "(",    "@",  "**", "a.b.c", "A",  "_",	  "/",	      ".",     "#",
	"\t",  "\x01", "&",  ";",  "`",	    "\r", "Ab1",  "token",
};

static bool is_noun(const struct word *w)
{
	return w->is & (2 * WORD_CREDENTIAL - 1);
}

static unsigned nouns(void)
{
	unsigned n = 0;

	for (size_t i = 0; i < word_count; i++)
		n += is_noun(&word_table[i]);
	return n;
}

static const char *noun(unsigned k)
{
	for (size_t i = 0;; i++) {
		if (is_noun(&word_table[i]) && k-- == 0)
			return word_table[i].text;
	}
}

static void unit_text(struct unit *u, const char *text)
{
	unit_add(u, text, strlen(text));
}

/* A piece of a unit at random. */
void unit_any(struct unit *u)
{
	size_t was = u->n;

	switch (unit_below(6)) {
	case 0:
		sample(u, pattern_table[unit_below((unsigned)pattern_count)].regex);
		break;
	case 1:
		unit_text(u, word_table[unit_below((unsigned)word_count)].text);
		unit_text(u, unit_below(2) ? "_" : "");
		break;
	case 2:
		unit_text(u, separators[unit_below(ARRAY_LEN(separators))]);
		break;
	case 3:
		unit_text(u, values[unit_below(ARRAY_LEN(values))]);
		break;
	default:
		unit_text(u, noun(unit_below(nouns())));
		unit_text(u, separators[unit_below(ARRAY_LEN(separators))]);
		unit_text(u, values[unit_below(ARRAY_LEN(values))]);
	}
	for (size_t i = was; unit_below(4) == 0 && i < u->n; i++)
		u->text[i] = (char)toupper((unsigned char)u->text[i]);
}

void units_of_tables(void (*each)(struct unit *u))
{
	for (size_t i = 0; i < pattern_count; i++) {
		static const char *const around[] = { "", "-", " ", "_a", "\n", "a.", "aaaaaaaa-" };

		for (size_t k = 0; k < ARRAY_LEN(around); k++) {
			struct unit u = { .n = 0 };

			sample(&u, pattern_table[i].regex);
			unit_text(&u, around[k]);
			each(&u);
		}
	}
	for (unsigned i = 0; i < nouns(); i++) {
		for (size_t s = 0; s < ARRAY_LEN(separators); s++) {
			struct unit u = { .n = 0 };

			unit_text(&u, noun(i));
			unit_text(&u, separators[s]);
			each(&u);
		}
		for (size_t v = 0; v < ARRAY_LEN(values); v++) {
			struct unit u = { .n = 0 };

			unit_text(&u, noun(i));
			unit_text(&u, "=");
			unit_text(&u, values[v]);
			each(&u);
		}
	}
}
