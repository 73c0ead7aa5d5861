/* `holt agent`: coding agents of others, which run in sandboxes. A file and a row a word. */
#include "cli/agent/agent.h"

#include "cli/common/home.h"
#include "cli/import/file.h"

enum { MEMBERS_MAX = 256 << 10 };

int agent_file_open(struct agent_file *f, const char *said, struct err *e)
{
	char path[PATH_MAX];
	bool must;

	*f = (struct agent_file){ NULL, NULL };
	if (home_config(said, path, &must, e) < 0)
		return -1;
	f->config = config_open(path, must, e);
	f->presets = f->config ? agent_presets_read(path, e) : NULL;
	return f->presets ? 0 : -1;
}

int agent_file_add(struct str object, const char *section, struct str text, struct buf *to,
		   struct err *e)
{
	autobuf struct buf lines = BUF_INIT(MEMBERS_MAX);

	if (import_lines(object, &lines, e) < 0)
		return -1;
	return lines.n ? config_insert(text, section, "{}", buf_str(&lines), to, e)
		       : buf_add(to, text.p, text.n, e);
}

void agent_file_fini(struct agent_file *f)
{
	agent_presets_free(f->presets);
	config_unref(f->config);
	*f = (struct agent_file){ NULL, NULL };
}

extern const struct verb agent_run_verb, agent_presets_verb, agent_add_verb, agent_ls_verb,
	agent_rm_verb, agent_update_verb, agent_doctor_verb, agent_acp_verb, agent_login_verb,
	agent_logout_verb, agent_diff_verb, agent_apply_verb;
static const struct verb *const words[] = {
	&agent_run_verb,
	&agent_presets_verb,
	&agent_add_verb,
	&agent_login_verb,
	&agent_logout_verb,
	&agent_ls_verb,
	&agent_doctor_verb,
	&agent_update_verb,
	&agent_rm_verb,
	&agent_acp_verb,
	&agent_diff_verb,
	&agent_apply_verb,
	NULL,
};

const struct verb agent_verb = {
	.name = "agent",
	.usage = "WORD [OPTION...]",
	.doc = "Run coding agents, such as Claude Code and Codex, in sandboxes.",
	.page = "holt-agent",
	.options = &verb_bare,
	.size = sizeof(struct verb_options),
	.words = words,
};
