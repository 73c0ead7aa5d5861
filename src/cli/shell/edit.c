#include "cli/shell/edit.h"

#include <histedit.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"
#include "base/mem.h"
#include "cli/common/split.h"

enum { HISTORY_LINES = 1000, LINE_MAX_BYTES = 64 << 10, WORD_MAX = 64, PER_LINE = 8 };

struct edit {
	EditLine *el;
	History *history;
	HistEvent event;
	const char *prompt;
	edit_complete_fn *complete;
	char line[LINE_MAX_BYTES + 1];
};

static char *edit_prompt(EditLine *el)
{
	struct edit *ed;

	el_get(el, EL_CLIENTDATA, &ed);
	return (char *)(uintptr_t)ed->prompt;
}

/* ---- completion ---------------------------------------------------------------------------- */

/* The words that begin with `half`. */
struct common {
	const char *half;
	char more[WORD_MAX]; /* what they have in common behind it */
	unsigned n;
	bool print;
};

static void common_tell(void *to, const char *word)
{
	struct common *c = to;
	size_t half = strlen(c->half), k = 0;

	if (strncmp(word, c->half, half) != 0)
		return;
	if (c->print)
		printf("%s%s", c->n % PER_LINE ? "  " : "\n", word);
	else if (c->n == 0)
		snprintf(c->more, sizeof(c->more), "%s", word + half);
	while (c->more[k] && c->more[k] == word[half + k])
		k++;
	c->more[k] = '\0';
	c->n++;
}

/* The words before the half one that the line ends with. */
static char **edit_before(const char *line, size_t n, struct arena *a)
{
	static char *none[] = { NULL };
	struct err e;
	char *text = arena_dup(a, (struct str){ line, n }, &e);

	return !text || strspn(text, " ") == n ? none : split_command(text, a, &e);
}

static unsigned char edit_on_tab(EditLine *el, int key)
{
	AUTO(arena_free) struct arena *a = arena_new(4 * LINE_MAX_BYTES);
	const LineInfo *at = el_line(el);
	size_t n = (size_t)(at->cursor - at->buffer), begin = n;
	struct common c = { .n = 0 };
	struct edit_words all = { common_tell, &c };
	struct edit *ed;
	struct err e;
	char **before;

	el_get(el, EL_CLIENTDATA, &ed);
	while (begin > 0 && at->buffer[begin - 1] != ' ')
		begin--;
	before = a ? edit_before(at->buffer, begin, a) : NULL;
	c.half = a ? arena_dup(a, (struct str){ at->buffer + begin, n - begin }, &e) : NULL;
	if (!before || !c.half)
		return CC_REFRESH_BEEP;
	if (!before[0] && c.half[0] == '/') /* "/verb" */
		c.half++;
	ed->complete(before, &all);
	if (c.n == 1)
		snprintf(c.more + strlen(c.more), sizeof(c.more) - strlen(c.more), " ");
	if (c.n == 0 || (c.more[0] && el_insertstr(el, c.more) < 0))
		return CC_REFRESH_BEEP;
	if (c.more[0])
		return CC_REFRESH;
	c.print = true;
	c.n = 0;
	ed->complete(before, &all);
	putchar('\n');
	return CC_REDISPLAY;
}

/* ---- lines --------------------------------------------------------------------------------- */

static int edit_open(struct edit *ed, struct err *e)
{
	ed->history = history_init();
	ed->el = el_init("holt", stdin, stdout, stderr);
	if (!ed->history || !ed->el)
		return err_set(e, ERR_LIMIT, "the terminal can't be edited");
	history(ed->history, &ed->event, H_SETSIZE, HISTORY_LINES);
	history(ed->history, &ed->event, H_SETUNIQUE, 1);
	el_set(ed->el, EL_CLIENTDATA, ed);
	el_set(ed->el, EL_PROMPT, edit_prompt);
	el_set(ed->el, EL_EDITOR, "emacs");
	el_set(ed->el, EL_SIGNAL, 1);
	el_set(ed->el, EL_HIST, history, ed->history);
	el_set(ed->el, EL_ADDFN, "holt-complete", "Complete a word", edit_on_tab);
	el_set(ed->el, EL_BIND, "^I", "holt-complete", NULL);
	el_set(ed->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
	return 0;
}

struct edit *edit_new(const char *prompt, edit_complete_fn *complete, struct err *e)
{
	struct edit *ed;

	if (library_load("edit", e) < 0)
		return NULL;
	ed = calloc(1, sizeof(*ed));
	if (!ed) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	ed->prompt = prompt;
	ed->complete = complete;
	if (edit_open(ed, e) == 0)
		return ed;
	edit_free(ed);
	return NULL;
}

void edit_free(struct edit *ed)
{
	if (!ed)
		return;
	if (ed->el)
		el_end(ed->el);
	if (ed->history)
		history_end(ed->history);
	free(ed);
}

const char *edit_line(struct edit *ed)
{
	int n;
	const char *line = el_gets(ed->el, &n);

	if (!line || n <= 0)
		return NULL;
	if ((size_t)n > sizeof(ed->line) - 1)
		n = (int)sizeof(ed->line) - 1;
	memcpy(ed->line, line, (size_t)n);
	while (n > 0 && (ed->line[n - 1] == '\n' || ed->line[n - 1] == '\r'))
		n--;
	ed->line[n] = '\0';
	if (n > 0)
		history(ed->history, &ed->event, H_ENTER, ed->line);
	return ed->line;
}
