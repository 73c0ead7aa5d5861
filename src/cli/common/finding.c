#include "cli/common/finding.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

static const struct field fields[] = {
	FIELD(struct finding, feature, .flags = FIELD_REQUIRED,
	      .doc = "Name of the feature, for --allow-missing."),
	FIELD(struct finding, ok, .flags = FIELD_REQUIRED, .doc = "Whether it works here."),
	FIELD(struct finding, required, .flags = FIELD_REQUIRED,
	      .doc = "Whether sandboxes need it."),
	FIELD(struct finding, detail, .flags = FIELD_REQUIRED, .doc = "Result of the check."),
	FIELD(struct finding, remedy, .doc = "How to make it work."),
};
const struct field_table finding_table = FIELD_TABLE(struct finding, fields);

struct marks marks_pick(void)
{
	setlocale(LC_CTYPE, "");
	if (strcmp(nl_langinfo(CODESET), "UTF-8") == 0)
		return (struct marks){ "✓", "✗", "–" };
	return (struct marks){ "ok", "NO", "--" };
}

/* Prints text indented, in lines of a terminal's width. */
static void print_wrapped(struct str text)
{
	size_t column = 0;

	while (text.n > 0) {
		const char *space = memchr(text.p, ' ', text.n);
		size_t n = space ? (size_t)(space - text.p) : text.n;

		if (column > 0 && column + 1 + n > 74) {
			putchar('\n');
			column = 0;
		}
		printf("%s%.*s", column > 0 ? " " : "     ", (int)n, text.p);
		column += n + 1;
		n += space ? 1 : 0;
		text = (struct str){ text.p + n, text.n - n };
	}
	putchar('\n');
}

void finding_print(const struct finding *f, const struct marks *m, bool with_remedy)
{
	const char *mark = f->ok ? m->yes : f->required ? m->no : m->optional;

	printf("%s %-*s%.*s\n", mark, f->detail.n ? 16 : 0, f->feature.p, STR_ARG(f->detail));
	if (with_remedy && f->remedy.n)
		print_wrapped(f->remedy);
}
