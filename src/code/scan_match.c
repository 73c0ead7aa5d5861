#include "code/scan_match.h"

#include <stdlib.h>
#include <string.h>

#include "code/clean.h"
#include "code/scan_fold.h"

enum {
	SENTENCE = 4, /* words that the end of a sentence counts for */
	DENIED = 4, /* words after which a denial no longer holds */
	SPACED = 24, /* letters of a word that is written with blanks in between */
	COMPOUND_MAX = 256,
};

/* A word and its classes, by open addressing; at least half of the slots are free. */
struct slot {
	struct str word;
	scan_classes_t classes;
};

/* Where a rule stands: for each step the last word that it fits, and the byte at which that
 * beginning began. 0: none. */
struct progress {
	size_t at[RULE_STEPS], from[RULE_STEPS];
};

struct matcher {
	struct slot *slots;
	size_t mask, used;
	/* Of the text that is read: */
	struct str text;
	struct progress rules[RULES_MAX];
	size_t at; /* number of the last word, from SENTENCE */
	size_t denied; /* number of the last word that denies */
	bool begins; /* a sentence or line */
	char spaced[SPACED]; /* letters that stand alone */
	size_t spaced_n, spaced_from, spaced_end;
	struct str *ret;
};

/* A word of the text, folded. */
struct part {
	char p[PART_MAX];
	size_t n;
	size_t from, end; /* bytes of the text */
};

/* ---- words and their classes ---------------------------------------------------------------- */

static struct slot *slot_of(const struct matcher *m, struct str word)
{
	uint64_t h = 0xcbf29ce484222325u;
	size_t i;

	for (i = 0; i < word.n; i++)
		h = (h ^ (unsigned char)word.p[i]) * 0x100000001b3u;
	for (i = h & m->mask; m->slots[i].word.p && !str_eq(m->slots[i].word, word);
	     i = (i + 1) & m->mask)
		;
	return &m->slots[i];
}

static void add_word(struct matcher *m, struct str word, scan_classes_t classes)
{
	struct slot *slot = slot_of(m, word);

	if (!slot->word.p && (m->used + 1) * 2 > m->mask)
		return;
	m->used += !slot->word.p;
	slot->word = word;
	slot->classes |= classes;
}

static scan_classes_t classes_of(const struct matcher *m, struct str word)
{
	return slot_of(m, word)->classes;
}

static void add_class(struct matcher *m, const struct word_class *c)
{
	for (const char *at = c->words; *at;) {
		size_t n = strcspn(at, " ");

		add_word(m, (struct str){ at, n }, c->bit);
		at += n + (at[n] == ' ');
	}
}

/* Only what can't be an ordinary word: a tool may be called "search". */
static bool is_distinctive(struct str name)
{
	for (size_t i = 1; i + 1 < name.n; i++) {
		if (strchr("_-.", name.p[i]) || (name.p[i] >= 'A' && name.p[i] <= 'Z' &&
						 name.p[i - 1] >= 'a' && name.p[i - 1] <= 'z'))
			return true;
	}
	return false;
}

struct matcher *matcher_new(const struct scan_tools *known, struct err *e)
{
	size_t room = 4096, names = known->own_n + known->others_n;
	struct matcher *m = calloc(1, sizeof(*m));

	while (room < names * 4)
		room *= 2;
	if (m)
		m->slots = calloc(room, sizeof(*m->slots));
	if (!m || !m->slots) {
		matcher_free(m);
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	m->mask = room - 1;
	for (size_t i = 0; i < scan_classes_n; i++)
		add_class(m, &scan_classes[i]);
	for (size_t i = 0; i < known->own_n; i++)
		matcher_own(m, known->own[i]);
	for (size_t i = 0; i < known->others_n; i++) {
		if (is_distinctive(known->others[i]))
			add_word(m, known->others[i], CLASS_OTHER_TOOL);
	}
	return m;
}

void matcher_free(struct matcher *m)
{
	if (!m)
		return;
	free(m->slots);
	free(m);
}

void matcher_own(struct matcher *m, struct str name)
{
	if (is_distinctive(name) && !(classes_of(m, name) & CLASS_OTHER_TOOL))
		add_word(m, name, CLASS_OWN);
}

/* The word, or without the ending of a plural, of a past or of an -ing. */
static scan_classes_t stem_classes(const struct matcher *m, struct str w)
{
	static const struct {
		const char *ending;
		size_t cut;
		const char *more; /* to add after the cut */
	} forms[] = {
		{ "s", 1, "" },	   { "es", 2, "" },	{ "ies", 3, "y" },
		{ "ed", 2, "" },   { "d", 1, "" },	{ "ing", 3, "" },
		{ "ing", 3, "e" }, { "ying", 4, "ie" }, { "ly", 2, "" },
	};
	scan_classes_t c = classes_of(m, w);
	char text[PART_MAX + 2];

	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		if (w.n < forms[i].cut + 3 || !str_ends(w, forms[i].ending))
			continue;
		memcpy(text, w.p, w.n - forms[i].cut);
		strcpy(text + w.n - forms[i].cut, forms[i].more);
		c |= classes_of(m, str_of(text));
	}
	return c;
}

/* 1gn0r3 */
static scan_classes_t leet_classes(const struct matcher *m, struct str w)
{
	static const char digits[] = "0134578", letters[] = "oieastb";
	char text[PART_MAX];
	bool letter = false, digit = false;

	for (size_t i = 0; i < w.n; i++) {
		const char *d = strchr(digits, w.p[i]);

		letter = letter || (w.p[i] >= 'a' && w.p[i] <= 'z');
		digit = digit || d;
		text[i] = d ? letters[d - digits] : w.p[i];
	}
	return letter && digit && w.n > 3 ? stem_classes(m, (struct str){ text, w.n }) : 0;
}

/* ---- rules ---------------------------------------------------------------------------------- */

static void advance(struct matcher *m, size_t r, scan_classes_t classes, size_t from, size_t end)
{
	const struct rule *rule = &scan_rules[r];
	struct progress *p = &m->rules[r];

	for (size_t k = RULE_STEPS; k-- > 0;) {
		const struct rule_step *s = &rule->steps[k];
		bool last = k + 1 == RULE_STEPS || !rule->steps[k + 1].words;

		if (!(classes & s->words))
			continue;
		if (k > 0 &&
		    (!p->at[k - 1] || m->at <= p->at[k - 1] || m->at - p->at[k - 1] > s->gap + 1))
			continue;
		if (k == 0 && rule->can_be_denied && m->denied && m->at - m->denied <= DENIED)
			continue;
		p->at[k] = m->at;
		p->from[k] = k > 0 ? p->from[k - 1] : from;
		if (last && !m->ret[rule->kind].p)
			m->ret[rule->kind] = (struct str){ m->text.p + p->from[k],
							   end - p->from[k] };
	}
}

static void take(struct matcher *m, scan_classes_t classes, size_t from, size_t end)
{
	if (!classes)
		return;
	for (size_t r = 0; r < scan_rules_n; r++)
		advance(m, r, classes, from, end);
	if (classes & CLASS_EVEN_NOT)
		m->denied = 0;
	if (classes & CLASS_NOT)
		m->denied = m->at;
}

/* The same for something that begins where the next word does. */
static void take_next(struct matcher *m, scan_classes_t classes, size_t from, size_t end)
{
	m->at++;
	take(m, classes, from, end);
	m->at--;
}

/* ---- words of a text ------------------------------------------------------------------------ */

static void end_spaced(struct matcher *m)
{
	struct str word = { m->spaced, m->spaced_n };

	if (m->spaced_n >= 4)
		take(m, stem_classes(m, word), m->spaced_from, m->spaced_end);
	m->spaced_n = 0;
}

/* "i g n o r e": letters that stand alone, one character apart, are a word too. */
static void take_spaced(struct matcher *m, const struct part *w)
{
	if (w->n != 1 || (m->spaced_n && w->from > m->spaced_end + 1))
		end_spaced(m);
	if (w->n != 1 || m->spaced_n == SPACED)
		return;
	if (!m->spaced_n)
		m->spaced_from = w->from;
	m->spaced[m->spaced_n++] = w->p[0];
	m->spaced_end = w->end;
}

static bool is_label(struct str w)
{
	static const char *const labels[] = { "system", "assistant", "developer", "admin", "ai" };

	for (size_t i = 0; i < ARRAY_LEN(labels); i++) {
		if (str_is(w, labels[i]))
			return true;
	}
	return false;
}

static void take_part(struct matcher *m, const struct part *w)
{
	struct str word = { w->p, w->n };
	scan_classes_t classes;

	m->at++;
	classes = stem_classes(m, word);
	if (!classes)
		classes = leet_classes(m, word);
	if (m->begins && w->end < m->text.n && m->text.p[w->end] == ':' && is_label(word))
		classes |= CLASS_LABEL;
	m->begins = false;
	take(m, classes, w->from, w->end);
	take_spaced(m, w);
}

static bool joins(char c)
{
	return c == '_' || c == '-' || c == '.' || c == '/';
}

/* A name such as send_email, before its parts. */
static void take_compound(struct matcher *m, size_t from, size_t end)
{
	struct str name = { m->text.p + from, end - from };
	scan_classes_t classes;
	bool snake;

	while (name.n && joins(name.p[name.n - 1]))
		name.n--;
	if (!is_distinctive(name) || name.n > COMPOUND_MAX)
		return;
	classes = classes_of(m, name) & (CLASS_OTHER_TOOL | CLASS_OWN);
	snake = memchr(name.p, '_', name.n) && !memchr(name.p, '/', name.n) &&
		!memchr(name.p, '.', name.n);
	if (!classes && snake)
		classes = CLASS_SOME_TOOL;
	if (classes & CLASS_OWN)
		classes = CLASS_OWN;
	take_next(m, classes, from, from + name.n);
}

/* Files that nothing but their owner's programs should read. */
static const char *const secret_paths[] = {
	"~/.ssh",
	".ssh/",
	"id_rsa",
	"id_ed25519",
	"id_ecdsa",
	"authorized_keys",
	"~/.aws",
	".aws/credentials",
	"~/.config/gcloud",
	"~/.kube",
	".kube/config",
	"~/.netrc",
	".netrc",
	"~/.npmrc",
	"~/.pypirc",
	"~/.gnupg",
	"~/.docker/config",
	"/etc/passwd",
	"/etc/shadow",
	"~/.env",
	".env",
	"~/.bash_history",
	".bash_history",
	"~/.zsh_history",
	"~/.git-credentials",
	".git-credentials",
	"mcp.json",
	"~/.cursor",
	"~/.claude",
	"claude_desktop_config",
	"credentials.json",
	"wallet.dat",
	"secrets.yaml",
	"secrets.json",
	"login.keychain",
	"/proc/self/environ",
	"process.env",
	"~/.config",
	"~/.codex",
	".pem",
	"/.dockerenv",
};

bool scan_begins(struct str text, size_t at, const char *low)
{
	size_t n = strlen(low);

	if (n > text.n - at)
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = text.p[at + i];

		if ((c >= 'A' && c <= 'Z' ? c + 32 : c) != low[i])
			return false;
	}
	return true;
}

static bool is_word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Paths and addresses, where neither a word nor a number stands before. */
static void take_path(struct matcher *m, size_t at)
{
	bool inside = at > 0 && is_word_char(m->text.p[at - 1]);
	char c = m->text.p[at];

	if (c == '@' && inside && at + 1 < m->text.n && is_word_char(m->text.p[at + 1]))
		take_next(m, CLASS_PLACE, at, at + 1);
	if (inside || !strchr("~./iaIAhHmMcCwWsSlLpP", c))
		return;
	if (scan_begins(m->text, at, "https://") || scan_begins(m->text, at, "http://"))
		take_next(m, CLASS_PLACE, at, at + 7);
	for (size_t i = 0; i < ARRAY_LEN(secret_paths); i++) {
		const char *p = secret_paths[i];
		size_t end = at + strlen(p);

		if ((p[0] != c && p[0] != c + 32) || !scan_begins(m->text, at, p))
			continue;
		if (end < m->text.n && is_word_char(m->text.p[end]) &&
		    !strchr("/", p[end - at - 1]))
			continue;
		take_next(m, CLASS_FILE, at, end);
		return;
	}
}

/* The end of a name's characters: letters of any script, and what joins them. */
static size_t compound_end(struct str text, size_t at)
{
	while (at < text.n && (is_word_char(text.p[at]) || joins(text.p[at])))
		at++;
	return at;
}

void matcher_run(struct matcher *m, struct str text, struct str ret[SCAN_KINDS])
{
	struct part w = { .n = 0 };
	size_t compound = 0, lines = 0;

	memset(m->rules, 0, sizeof(m->rules));
	memset(ret, 0, SCAN_KINDS * sizeof(*ret));
	m->text = text;
	m->ret = ret;
	m->at = SENTENCE;
	m->denied = m->spaced_n = 0;
	m->begins = true;
	for (size_t at = 0; at < text.n;) {
		size_t from = at;
		uint32_t c = clean_char(text, &at);
		char f = scan_fold(c);

		if (f == 0 || c == '\'' || c == 0x2019)
			continue;
		take_path(m, from);
		if (f != ' ') {
			if (w.n == 0)
				w.from = from;
			if (w.n == 0 && from >= compound && is_word_char(text.p[from])) {
				compound = compound_end(text, from);
				take_compound(m, from, compound);
			}
			if (w.n < PART_MAX)
				w.p[w.n++] = f;
			w.end = at;
			lines = 0;
			continue;
		}
		if (w.n)
			take_part(m, &w);
		w.n = 0;
		lines = c == '\n' ? lines + 1 : lines;
		if (c == '\n')
			m->begins = true;
		if (((c == '.' || c == '!' || c == '?' || c == ';') && at < text.n &&
		     strchr(" \n\t\r\"')*", text.p[at])) ||
		    (c == '\n' && lines == 2)) {
			m->at += SENTENCE;
			m->begins = true;
		}
	}
	if (w.n)
		take_part(m, &w);
	end_spaced(m);
}
