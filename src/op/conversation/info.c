/* conversation.config, conversation.runtime and conversation.workspaces: what agents may know of
 * the hub that they are in. None of it has a secret, or a command's arguments. */
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "call/guard.h"
#include "guard/policy/policy.h"
#include "op/conversation/conversation.h"

struct info_request {
	struct str session_id;
};
static const struct field request_fields[] = { SESSION_ROW(struct info_request) };
static const struct field_table request_table = FIELD_TABLE(struct info_request, request_fields);

static const struct config *info_config(struct call *c)
{
	const struct policy *p = call_guard(c)->policy;

	return p ? p->config : NULL;
}

/* Agents with a conversation need its flag. */
static struct conversations *info_caller(struct call *c, const struct info_request *q,
					 struct err *e)
{
	struct conversation_caller who;

	if (conversation_caller(c, q->session_id, &who, e) < 0)
		return NULL;
	if (who.me &&
	    !conversation_permits(c, q->session_id, CONVERSATION_FLAG_can_do_introspection, e))
		return NULL;
	return who.all;
}

/* ---- conversation.config --------------------------------------------------------------------- */

struct agent_view {
	struct str name;
};
static const struct field agent_fields[] = {
	FIELD(struct agent_view, name, .flags = FIELD_REQUIRED,
	      .doc = "Name in the operator's file."),
};
static const struct field_table agent_table = FIELD_TABLE(struct agent_view, agent_fields);

struct session_view {
	uint64_t queue_max, trash_days;
};
static const struct field session_fields[] = {
	FIELD(struct session_view, queue_max, .flags = FIELD_REQUIRED,
	      .doc = "Maximum number of prompts that wait for a conversation."),
	FIELD(struct session_view, trash_days, .flags = FIELD_REQUIRED,
	      .doc = "Days for which a deleted conversation can be restored."),
};
static const struct field_table session_table = FIELD_TABLE(struct session_view, session_fields);

struct config_view {
	struct {
		struct agent_view *p;
		size_t n;
	} acp_servers;
	struct session_view session;
};
static const struct field config_fields[] = {
	FIELD_OBJECTS(struct config_view, acp_servers, agent_table, .flags = FIELD_REQUIRED,
		      .max = CONFIG_LIST_MAX,
		      .doc = "The agents of the operator's file that you may use."),
	FIELD_OBJECT(struct config_view, session, session_table, .flags = FIELD_REQUIRED,
		     .doc = "Limits of conversations."),
};
static const struct field_table config_view_table = FIELD_TABLE(struct config_view, config_fields);

static int config_collect(struct call *c, struct conversations *all, struct config_view *ret,
			  struct err *e)
{
	struct agent_view *p = arena_array(call_arena(c), CONFIG_LIST_MAX, sizeof(*p), e);
	const struct config *config = info_config(c);
	struct err denied;
	const char *name;
	size_t n = 0;

	if (!p)
		return -1;
	for (size_t i = 0; n < CONFIG_LIST_MAX && (name = conversations_agent(all, i)); i++) {
		if (conversation_check_start(c, str_of(name), STR_NONE, &denied) == 0)
			p[n++].name = str_of(name);
	}
	*ret = (struct config_view){ .acp_servers = { p, n }, .session = { QUEUE_MAX, 0 } };
	if (config)
		ret->session.trash_days = config_file(config)->conversations.trash_days;
	return 0;
}

static void config_run(struct call *c, const void *request)
{
	struct err e = ERR_INIT;
	struct conversations *all = info_caller(c, request, &e);
	struct config_view view;

	if (!all || config_collect(c, all, &view, &e) < 0)
		call_fail(c, &e);
	else
		call_answer(c, &view);
}

const struct op conversation_config_op = {
	.action = "conversation.config",
	.doc = "Returns the part of the configuration that matters to agents, without secrets.",
	.effect = OP_READ,
	.request = &request_table,
	.result = &config_view_table,
	.run = config_run,
};

/* ---- conversation.runtime -------------------------------------------------------------------- */

#define V struct runtime_view
struct runtime_view {
	struct str os, arch, hostname, executable, working_dir, version, data_dir, sessions_dir,
		logs_dir, config_file;
	struct field_strs log_files, config_files; /* at most one each */
	uint64_t num_cpu, pid;
	bool has_pid;
};
static const struct field runtime_fields[] = {
	FIELD(V, os, .flags = FIELD_REQUIRED, .doc = "Operating system: linux."),
	FIELD(V, arch, .flags = FIELD_REQUIRED, .doc = "Architecture of the processor."),
	FIELD(V, num_cpu, .flags = FIELD_REQUIRED, .doc = "Number of processors."),
	/* The rest is for who administers the hub, and for agents that may look at it. */
	FIELD(V, hostname, .doc = "Host name of the machine."),
	FIELD(V, pid, .has = FIELD_HAS(V, has_pid), .doc = "Process id of the hub."),
	FIELD(V, executable, .doc = "Path of the hub's program."),
	FIELD(V, working_dir, .doc = "Working directory of the hub."),
	FIELD(V, version, .flags = FIELD_REQUIRED, .doc = "Version of Holt."),
	FIELD(V, data_dir, .doc = "Holt's data folder."),
	FIELD(V, sessions_dir, .doc = "Folder of the conversations."),
	FIELD(V, logs_dir, .doc = "Folder of the hub's log, where it goes to a file."),
	FIELD(V, log_files, .max = 1,
	      .doc = "Paths of the hub's log: empty where it goes to no "
		     "file, such as a journal."),
	FIELD(V, config_file, .doc = "Path of the operator's file."),
	FIELD(V, config_files, .max = 1, .doc = "The same, as far as it exists."),
};
#undef V
static const struct field_table runtime_table = FIELD_TABLE(struct runtime_view, runtime_fields);

/* A key without admin has no use for what the machine is called and where its files are. */
static bool runtime_is_for(struct call *c, const struct info_request *q)
{
	struct conversation_caller who;
	struct err e;

	return call_principal(c)->scopes & KEY_ADMIN ||
	       (conversation_caller(c, q->session_id, &who, &e) == 0 && who.me);
}

/* A hub logs to its standard error: hub.log of one that was started automatically. */
static void runtime_logs(struct runtime_view *v, char path[PATH_MAX], struct str *ret)
{
	struct stat st;
	ssize_t n = readlink("/proc/self/fd/2", path, PATH_MAX);
	const char *end;

	if (n <= 0 || fstat(STDERR_FILENO, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink == 0)
		return;
	*ret = (struct str){ path, (size_t)n };
	end = memrchr(path, '/', (size_t)n);
	v->logs_dir = (struct str){ path, end ? (size_t)(end - path) : 0 };
	v->log_files = (struct field_strs){ ret, 1 };
}

static void runtime_run(struct call *c, const void *request)
{
	char executable[PATH_MAX], folder[PATH_MAX], log[PATH_MAX];
	struct str log_file, config_file;
	struct err e = ERR_INIT;
	struct conversations *all = info_caller(c, request, &e);
	const struct config *config = info_config(c);
	struct runtime_view view = { .os = STR_LIT("linux"), .version = STR_LIT(HOLT_VERSION) };
	struct utsname name;
	ssize_t n;

	if (!all || uname(&name) < 0) {
		call_fail(c, &e);
		return;
	}
	view.arch = str_of(name.machine);
	view.num_cpu = (uint64_t)get_nprocs();
	if (!runtime_is_for(c, request)) {
		call_answer(c, &view);
		return;
	}
	n = readlink("/proc/self/exe", executable, sizeof(executable));
	view.hostname = str_of(name.nodename);
	view.pid = (uint64_t)getpid();
	view.has_pid = true;
	view.executable = n > 0 ? (struct str){ executable, (size_t)n } : STR_NONE;
	view.working_dir = str_of(getcwd(folder, sizeof(folder)));
	view.sessions_dir = view.data_dir = str_of(conversations_path(all));
	while (view.data_dir.n && view.data_dir.p[view.data_dir.n - 1] != '/')
		view.data_dir.n--;
	runtime_logs(&view, log, &log_file);
	view.config_file = config_file = config ? str_of(config_path(config)) : STR_NONE;
	if (config_file.n && config_exists(config))
		view.config_files = (struct field_strs){ &config_file, 1 };
	call_answer(c, &view);
}

const struct op conversation_runtime_op = {
	.action = "conversation.runtime",
	.doc = "Returns where the hub runs, and where its files are.",
	.effect = OP_READ,
	.request = &request_table,
	.result = &runtime_table,
	.run = runtime_run,
};

/* ---- conversation.workspaces ----------------------------------------------------------------- */

struct workspace_row {
	struct str name, working_dir, acp_server;
};
static const struct field workspace_fields[] = {
	FIELD(struct workspace_row, name, .flags = FIELD_REQUIRED,
	      .doc = "Name in the operator's file."),
	FIELD(struct workspace_row, working_dir, .flags = FIELD_REQUIRED,
	      .doc = "Path of the folder."),
	FIELD(struct workspace_row, acp_server,
	      .doc = "Default agent of conversations in this workspace."),
};
static const struct field_table workspace_table = FIELD_TABLE(struct workspace_row,
							      workspace_fields);

struct workspaces_rows {
	struct {
		struct workspace_row *p;
		size_t n;
	} workspaces;
};
static const struct field workspaces_fields[] = {
	FIELD_OBJECTS(struct workspaces_rows, workspaces, workspace_table, .flags = FIELD_REQUIRED,
		      .max = CONFIG_LIST_MAX, .doc = "In the order of the operator's file."),
};
static const struct field_table workspaces_table = FIELD_TABLE(struct workspaces_rows,
							       workspaces_fields);

static void workspaces_run(struct call *c, const void *request)
{
	struct err e = ERR_INIT;
	const struct config *config = info_config(c);
	const struct config_workspaces *all = config ? &config_file(config)->workspaces : NULL;
	struct workspaces_rows view = { { NULL, 0 } };
	struct err denied;

	if (!conversation_person(c, &e) ||
	    !(view.workspaces.p = arena_array(call_arena(c), all ? all->n : 0,
					      sizeof(*view.workspaces.p), &e))) {
		call_fail(c, &e);
		return;
	}
	for (size_t i = 0; all && i < all->n; i++) {
		if (conversation_check_start(c, STR_NONE, all->p[i].name, &denied) == 0)
			view.workspaces.p[view.workspaces.n++] = (struct workspace_row){
				all->p[i].name, all->p[i].dir, all->p[i].agent
			};
	}
	call_answer(c, &view);
}

const struct op conversation_workspaces_op = {
	.action = "conversation.workspaces",
	.doc = "Lists the folders in which your agents may work.",
	.effect = OP_READ,
	.request = &op_nothing_table,
	.result = &workspaces_table,
	.run = workspaces_run,
};
