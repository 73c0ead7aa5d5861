#include "cli/serve/elsewhere.h"

#include <limits.h>

#include "cli/common/home.h"
#include "modules/agent_program.h"

enum { FOUND_ARENA = 256 << 10, WORDS_MAX = ERR_MSG_MAX - 64 };

/* The agent of which it is the terminal interface; NULL: none. */
static const struct agent_preset *elsewhere_agent(const struct agent_presets *all, struct str name)
{
	for (size_t i = 0; all && i < agent_presets_n(all); i++) {
		const struct agent_preset *p = agent_presets_at(all, i);

		if (p->run.n && str_eq(p->run.p[0], name))
			return p;
	}
	return NULL;
}

/* "holt run -v FILE:FILE -- FILE". An interpreter that is to be given, too, stands before FILE. */
static void elsewhere_words(const struct agent_program *found, struct err *e)
{
	size_t skip = found->read.n < 2 ? found->argv.n - 1 : 0;
	autobuf struct buf words = BUF_INIT(WORDS_MAX);
	struct err none;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < found->read.n; i++)
		rc = buf_addf(&words, &none, "-v %.*s:%.*s ", STR_ARG(found->read.p[i]),
			      STR_ARG(found->read.p[i]));
	for (size_t i = skip; rc == 0 && i < found->argv.n; i++)
		rc = buf_addf(&words, &none, "%s%.*s", i == skip ? "-- " : " ",
			      STR_ARG(found->argv.p[i]));
	if (rc == 0 && found->read.n)
		err_set(e, ERR_COMMAND_NOT_FOUND,
			"the sandbox does not have it, but this host has: holt run %.*s",
			STR_ARG(buf_str(&words)));
	else if (found->read.n)
		err_set(e, ERR_COMMAND_NOT_FOUND,
			"the sandbox does not have it, but this host has: give it %.*s by -v",
			STR_CUT(found->path, 160));
}

void elsewhere_tell(const char *config, struct str name, struct err *e)
{
	AUTO(agent_presets_free) struct agent_presets *all = NULL;
	AUTO(arena_free) struct arena *a = arena_new(FOUND_ARENA);
	static const struct agent_preset unknown = { .title = STR_NONE };
	const struct field_strs argv = { &name, 1 };
	char path[PATH_MAX], images[PATH_MAX];
	const struct agent_preset *agent;
	struct agent_program found;
	struct err none;
	bool must;
	int rc;

	if (!a || home_config(config, path, &must, &none) < 0 ||
	    home_where("images", images, &none) < 0)
		return;
	all = agent_presets_read(path, &none);
	agent = elsewhere_agent(all, name);
	rc = agent_program_find(agent ? agent : &unknown, &argv, images, a, &found, &none);
	if (agent)
		err_set(e, ERR_COMMAND_NOT_FOUND,
			"the sandbox does not have %.*s, which is an agent: holt agent %s %.*s",
			STR_CUT(name, 100), rc > 0 ? "run" : "add", STR_CUT(agent->name, 64));
	else if (rc > 0)
		elsewhere_words(&found, e);
}
