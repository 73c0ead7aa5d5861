#include "mcp/connect/forgotten.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "json/document/json.h"

enum {
	BODY_MAX = 4096,
	SENTENCE_MAX = 160,
	WORDS_MAX = 32,
	WORD_MAX = 16,
	NEAR = 4, /* words between the session and what is said about it */
};

struct sentence {
	char words[WORDS_MAX][WORD_MAX]; /* in lower case; long ones are cut */
	size_t n;
};

static void read_words(struct str text, struct sentence *ret)
{
	size_t at = 0;

	ret->n = 0;
	for (size_t i = 0; i < text.n && ret->n < WORDS_MAX; i++) {
		char *word = ret->words[ret->n];

		if (isalpha((unsigned char)text.p[i]) && at < WORD_MAX - 1)
			word[at++] = (char)tolower((unsigned char)text.p[i]);
		if (at == 0 || (i + 1 < text.n && isalpha((unsigned char)text.p[i + 1])))
			continue;
		word[at] = '\0';
		at = 0;
		ret->n++;
	}
}

static bool is(const struct sentence *s, size_t i, const char *word)
{
	return i < s->n && strcmp(s->words[i], word) == 0;
}

static const struct {
	const char *word, *next; /* NULL: any word */
} denials[] = {
	{ "invalid", NULL },	 { "unknown", NULL },	   { "expired", NULL },
	{ "terminated", NULL },	 { "no", "valid" },	   { "no", "such" },
	{ "no", "active" },	 { "no", "session" },	   { "not", "found" },
	{ "not", "known" },	 { "not", "valid" },	   { "not", "exist" },
	{ "not", "recognized" }, { "not", "initialized" },
};

static bool denies(const struct sentence *s, size_t i)
{
	for (size_t k = 0; k < ARRAY_LEN(denials); k++) {
		if (is(s, i, denials[k].word) &&
		    (!denials[k].next || is(s, i + 1, denials[k].next)))
			return true;
	}
	return false;
}

/* "No valid session ID provided", "Session not found", …; a restarted server says "Server not
 * initialized". */
static bool is_said(struct str text)
{
	struct sentence s;

	if (text.n > SENTENCE_MAX)
		return false;
	read_words(text, &s);
	for (size_t i = 0; i < s.n; i++) {
		if (is(&s, i, "server") && is(&s, i + 1, "not") && is(&s, i + 2, "initialized"))
			return true;
		if (!is(&s, i, "session"))
			continue;
		for (size_t k = i > NEAR ? i - NEAR : 0; k <= i + NEAR && k < s.n; k++) {
			if (denies(&s, k))
				return true;
		}
	}
	return false;
}

/* JSON-RPC without a request's id, or {"error": …}. */
static bool is_said_in(const struct json_val *v)
{
	const struct json_val *id = json_get(v, "id"), *error = json_get(v, "error");
	struct str text = json_str(error);

	if (id && json_type(id) != JSON_NULL)
		return false;
	if (!text.p)
		text = json_str(json_get(error, "message"));
	return text.p && is_said(text);
}

bool mcp_is_forgotten(int status, struct str text)
{
	const struct json_options o = { .bytes = BODY_MAX };
	AUTO(json_free) struct json_doc *doc = NULL;
	struct err e;

	if (status != 400)
		return status == 404;
	text = str_trim(text);
	if (str_starts(text, "<"))
		return false;
	if (!str_starts(text, "{"))
		return is_said(text);
	doc = json_parse(text, &o, &e);
	return doc && is_said_in(json_root(doc));
}
