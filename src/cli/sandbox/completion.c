/* `holt completion`: completion of Holt's command line. The shells' scripts call it with the
 * words typed so far, so all shells know every verb, option and sandbox. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/home.h"
#include "cli/common/verb.h"
#include "cli/link/link.h"

enum { HUB_SECONDS = 2 }; /* a person waits for it */

static const struct {
	const char *shell, *script;
} shells[] = {
	{ "bash", "# source <(holt completion bash)\n"
		  "_holt() {\n"
		  "	local IFS=$'\\n'\n"
		  "	COMPREPLY=($(holt completion -- \"${COMP_WORDS[@]:1:COMP_CWORD}\" "
		  "2>/dev/null))\n"
		  "}\n"
		  "complete -o default -F _holt holt\n" },
	{ "zsh", "#compdef holt\n"
		 "# source <(holt completion zsh)\n"
		 "_holt() {\n"
		 "	local -a found\n"
		 "	found=(${(f)\"$(holt completion -- \"${(@)words[2,CURRENT]}\" "
		 "2>/dev/null)\"})\n"
		 "	compadd -a found || _files\n"
		 "}\n"
		 "[[ $funcstack[1] = _holt ]] && _holt || compdef _holt holt\n" },
	{ "fish", "# holt completion fish | source\n"
		  "function __holt_words\n"
		  "	set -l typed (commandline -opc)\n"
		  "	set -l last (commandline -ct)\n"
		  "	holt completion -- $typed[2..] \"$last\" 2>/dev/null\n"
		  "end\n"
		  "complete -c holt -a '(__holt_words)'\n" },
};

static void offer(const char *start, const char *prefix, struct str text)
{
	char whole[256];

	snprintf(whole, sizeof(whole), "%s%.*s", prefix, STR_ARG(text));
	if (strncmp(whole, start, strlen(start)) == 0)
		puts(whole);
}

static void offer_verbs(const char *start)
{
	for (size_t i = 0; i < verbs_n; i++) {
		offer(start, "", str_of(verbs[i]->name));
		if (verbs[i]->alias)
			offer(start, "", str_of(verbs[i]->alias));
	}
}

static void offer_values(const char *(*value)(size_t i), const char *start)
{
	for (size_t i = 0; value && value(i); i++)
		offer(start, "", str_of(value(i)));
}

static void offer_choices(const struct option_row *o, const char *start)
{
	offer_values(o->value, start);
	for (const char *word = o->arg; o->kind == OPTION_CHOICE;) {
		size_t n = strcspn(word, "|");

		offer(start, "", (struct str){ word, n });
		if (!word[n])
			return;
		word += n + 1;
	}
}

/* A verb with this page and this word in its usage takes a name from a list of the hub. */
enum { TEMPLATES = 1 }; /* index of that row */
static const struct named {
	const char *page, *word, *path;
	const char *list; /* member with the list; NULL: the answer is one */
	const char *name; /* member of each */
} named[] = {
	{ "holt-sandbox", "NAME", "/v1/sandboxes", NULL, "id" },
	{ "holt-sandbox", "TEMPLATE", "/v1/templates", NULL, "id" },
	{ "holt-inbox", "ID", "/api/prompts", "prompts", "request_id" },
};

/* Names from a running hub; none is started for this. */
static void offer_named(const struct named *of, const char *start)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	char path[PATH_MAX];
	struct err e = ERR_INIT;
	struct json_iter it;
	const char *said = getenv("HOLT_SOCKET");

	if ((!said || !*said) && (home_socket(path, &e) < 0 || setenv("HOLT_SOCKET", path, 1) < 0))
		return;
	alarm(HUB_SECONDS);
	l = hub_link_open(&e);
	if (!l || hub_link_ask(l, "GET", of->path, STR_NONE, &doc, &e) < 0)
		return;
	it = json_iter(of->list ? json_get(json_root(doc), of->list) : json_root(doc));
	while (json_next(&it))
		offer(start, "", json_str(json_get(it.val, of->name)));
}

/* The option whose value is the next word, or NULL. */
static const struct option_row *awaits_value(const struct verb *v, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; word[0] == '-' && i < v->options->n; i++) {
		const struct option_row *o = &v->options->rows[i];

		if (o->kind != OPTION_FLAG &&
		    ((word[1] == '-' && strcmp(word + 2, o->name) == 0) ||
		     (word[1] != '-' && o->letter && word[n - 1] == o->letter)))
			return o;
	}
	return NULL;
}

/* words: typed after `holt`; the last is not complete. */
static void complete(char **words, size_t n)
{
	struct err e = ERR_INIT;
	const char *last = words[n - 1];
	const struct verb *v, *word;
	const struct option_row *o;

	if (n == 1) {
		offer_verbs(last);
		return;
	}
	v = cli_find(words[0], &e);
	for (size_t i = 1; v && i + 1 < n && (word = cli_find_word(v, words[i], &e)); i++)
		v = word;
	if (!v)
		return;
	o = awaits_value(v, words[n - 2]);
	if (o) {
		offer_choices(o, last);
		if (strcmp(o->name, "image") == 0 || strcmp(o->name, "template") == 0)
			offer_named(&named[TEMPLATES], last);
	} else if (last[0] == '-') {
		for (size_t i = 0; i < v->options->n; i++)
			offer(last, "--", str_of(v->options->rows[i].name));
	} else {
		for (size_t i = 0; v->words && v->words[i]; i++)
			offer(last, "", str_of(strrchr(v->words[i]->name, ' ') + 1));
		offer_values(v->operand, last);
		if (strcmp(v->name, "help") == 0)
			offer_verbs(last);
		for (size_t i = 0; i < ARRAY_LEN(named); i++) {
			if (strcmp(cli_page(v), named[i].page) == 0 &&
			    strstr(v->usage, named[i].word))
				offer_named(&named[i], last);
		}
	}
}

static int run_completion(const struct verb_input *in, struct err *e)
{
	size_t n = 0;

	while (in->rest && in->rest[n])
		n++;
	if (n > 0 && in->n_operands == 0) {
		complete(in->rest, n);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(shells); i++) {
		if (in->n_operands == 1 && strcmp(shells[i].shell, in->operands[0]) == 0) {
			fputs(shells[i].script, stdout);
			return 0;
		}
	}
	err_set(e, ERR_INVALID, "say bash, zsh or fish");
	return cli_wrong_usage(in->verb, e);
}

const struct verb completion_verb = {
	.name = "completion",
	.usage = "bash|zsh|fish",
	.doc = "Print a shell's completion script for holt.",
	.more = "With -- and the words after `holt`, it prints completions of the last one.",
	.options = &verb_bare,
	.size = sizeof(struct verb_options),
	.max_operands = 1,
	.run = run_completion,
};
