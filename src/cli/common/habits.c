/* What people type who use Docker, Podman or an older Holt, where Holt has it under another name or
 * not at all: each is answered with what does the same. */
#include "cli/common/verb.h"

#include <stdlib.h>
#include <string.h>

/* Words whose verb here is another one, and none that is spelled alike. */
static const struct {
	const char *word, *verb;
} moved[] = {
	{ "approvals", "inbox" },
	{ "buildx", "build" },
	{ "checkpoint", "snapshot" },
	{ "commit", "snapshot create" },
	{ "history", "ws log" },
	{ "image", "images" },
	{ "import", "images import" },
	{ "info", "doctor" },
	{ "load", "images import" },
	{ "login", "auth login" },
	{ "manifest", "images inspect" },
	{ "network", "net" },
	{ "port", "forward" },
	{ "prompts", "inbox" },
	{ "pull", "images pull" },
	{ "rmi", "images rm" },
	{ "save", "snapshot export" },
	{ "stats", "top" },
	{ "unpause", "resume" },
};

/* Words that no one verb stands for. */
static const struct {
	const char *word, *says;
} others[] = {
	{ "builder", "holt build makes images, holt images prune removes old build steps" },
	{ "compose", "holt up makes a sandbox, holt exec -d starts each program in it" },
	{ "container", "the verbs of sandboxes stand alone, such as holt ls and holt down" },
	{ "context", "holt hub shows the hub of this machine, the only one" },
	{ "export", "holt cp NAME:/ - writes its files as a tar archive, holt snapshot export a "
		    "snapshot" },
	{ "logout", "holt auth login replaces what is stored of a server" },
	{ "node", "a hub is of one machine, which holt doctor describes" },
	{ "plugin", "holt mcp gives agents tools, holt config what they may do" },
	{ "push", "nothing is sent to registries; holt snapshot export writes a file" },
	{ "rename", "a sandbox keeps its name; holt fork -n NAME copies it to another one" },
	{ "restart", "holt stop NAME, then holt start NAME" },
	{ "search", "no registry is searched; holt images pull takes an image by its name" },
	{ "service", "holt up makes a sandbox that stays, holt exec -d starts a program in it" },
	{ "stack", "holt up makes each sandbox, holt exec -d starts programs in it" },
	{ "swarm", "a hub is of one machine, which holt hub shows" },
	{ "system", "holt doctor shows the machine, holt hub the hub; holt images prune frees "
		    "space" },
	{ "tag", "holt build -t, holt images pull and holt images import name an image" },
	{ "trust", "holt images pull NAME@sha256:DIGEST takes that image and no other" },
	{ "update", "holt up sets limits, once; holt net changes what it reaches" },
	{ "volume", "holt up -v gives a folder of this machine, --workspace one that the hub keeps "
		    "(holt ws)" },
};

static const char stays[] = "holt up makes a sandbox that stays, with a name (-n) and ports (-p), "
			    "and holt exec -d runs something in it";
static const char lists[] = "holt ls lists sandboxes, all of them";
static const char json[] = "JSON, by -o json where there is a table, has all, for jq";
static const char is_all[] = "that is so always; leave it out";
static const char rights[] = "no sandbox has devices, or rights on this machine; -u root is root "
			     "inside, --debug lets its programs trace each other";
static const char shell[] = "holt exec -it NAME bash is a shell in it";
static const char slow[] = "holt kill NAME EXEC and holt wait NAME EXEC give a program time before";
static const char no_login[] = "a token may stand in a header: -H \"Authorization: Bearer TOKEN\"";
static const char own_arch[] = "programs are those of this machine's architecture";
static const char names[] = "it has no network of its own to name or address; --allow HOST lets it "
			    "reach one";

/* Options, by the verbs that are answered so. A verb's own come first. */
static const struct {
	const char *verbs, *name;
	char letter;
	const char *says;
} options[] = {
	{ "run", "name", 0, stays },
	{ "run", "detach", 'd', stays },
	{ "run", "publish", 'p', stays },
	{ "run", "label", 'l', stays },
	{ "up", "detach", 'd', is_all },
	{ "up", "interactive", 'i', shell },
	{ "up", "tty", 't', shell },
	{ "up", "image", 0, "holt up TEMPLATE: it stands behind the options" },
	{ "up", "rm", 0, "--ttl removes it after a time, holt run at its program's end" },
	{ "run|up", "publish-all", 'P', "holt up -p PORT forwards one" },
	{ "run|up", "mount", 0, "-v FOLDER:PATH[:rw] gives it a folder" },
	{ "run|up", "volumes-from", 0, "-v FOLDER:PATH[:rw] gives it a folder" },
	{ "run|up", "tmpfs", 0, "all its own files are in memory; --disk is their limit" },
	{ "run|up", "shm-size", 0, "--disk is the limit of files in memory" },
	{ "run|up", "read-only", 0, "its changes end with it; volumes are read-only without :rw" },
	{ "run|up", "entrypoint", 0, "a program that is named runs in place of the image's" },
	{ "run|up|exec", "privileged", 0, rights },
	{ "run|up", "cap-add", 0, rights },
	{ "run|up", "cap-drop", 0, rights },
	{ "run|up", "security-opt", 0, rights },
	{ "run|up", "device", 0, rights },
	{ "run|up", "gpus", 0, rights },
	{ "run|up", "userns", 0, rights },
	{ "run|up", "hostname", 0, names },
	{ "run|up", "add-host", 0, names },
	{ "run|up", "dns", 0, names },
	{ "run|up", "ip", 0, names },
	{ "run|up", "link", 0, names },
	{ "run|up", "expose", 0, names },
	{ "run|up", "network-alias", 0, names },
	{ "run|up", "init", 0, is_all },
	{ "run|up", "pids-limit", 0, "--pids N" },
	{ "run|up", "ulimit", 0, "--open-files and --pids are such limits" },
	{ "run|up", "memory-swap", 0, "--memory is the limit of its memory" },
	{ "run|up", "restart", 0, "nothing is started again by itself; holt start NAME does it" },
	{ "run|up", "pull", 0, "holt images pull NAME gets an image, once" },
	{ "run|up|build|images pull", "platform", 0, own_arch },
	{ "ls", "all", 'a', is_all },
	{ "ls", "latest", 'l', lists },
	{ "ls", "last", 'n', lists },
	{ "ls", "size", 's', "holt top shows what each uses" },
	{ "ps", "all", 'a', lists },
	{ "ps", "quiet", 'q', "holt ls -q lists the names of sandboxes" },
	{ "ps", "filter", 'f', "holt ls -f lists some sandboxes" },
	{ "ps", "latest", 'l', lists },
	{ "ps", "last", 'n', lists },
	{ "ps", "size", 's', "holt top shows what each uses" },
	{ "stop", "time", 't', slow },
	{ "stop", "timeout", 0, slow },
	{ "stop", "signal", 's', "holt kill -s SIGNAL NAME EXEC sends one to a program" },
	{ "resume", "attach", 0, "holt attach NAME connects to a program in it" },
	{ "resume", "interactive", 'i', shell },
	{ "down", "volumes", 'v', "folders of -v are of this machine, and stay" },
	{ "logs", "tail", 'n', "holt logs NAME | tail -n N" },
	{ "logs", "since", 0, "--since-offset N begins at a byte" },
	{ "logs", "until", 0, "holt logs NAME | head -c N" },
	{ "logs", "timestamps", 't', "output has no times; holt events has" },
	{ "attach", "sig-proxy", 0, "holt kill -s SIGNAL NAME EXEC sends a signal" },
	{ "cp", "archive", 'a', "modes and links are kept always; leave it out" },
	{ "cp", "recursive", 'r', "directories are copied with all that they have; leave it out" },
	{ "cp", "recursive", 'R', "directories are copied with all that they have; leave it out" },
	{ "cp", "follow-link", 'L', "links are copied as links; name what the link leads to" },
	{ "cp|images pull|build", "quiet", 'q', "2> /dev/null leaves out what it tells" },
	{ "images|images ls", "all", 'a', is_all },
	{ "images|images ls", "quiet", 'q', json },
	{ "images|images ls", "filter", 'f', json },
	{ "images|images ls", "digests", 0, json },
	{ "images prune", "all", 'a',
	  "images with a name stay (holt images rm); --all is for all build steps" },
	{ "images prune|images rm", "force", 'f', "it never asks, and removes nothing in use" },
	{ "images prune", "filter", 0, "holt images rm NAME removes one" },
	{ "images pull", "all-tags", 'a', "holt images pull takes one NAME:TAG at a time" },
	{ "build", "file", 'f', "it builds holt.json, Containerfile or Dockerfile of the FOLDER" },
	{ "build", "build-arg", 0, "ARG in the Containerfile has a default; holt.json has none" },
	{ "build", "target", 0, "the last stage of the Containerfile is built" },
	{ "build", "pull", 0, "holt images pull NAME gets a base again" },
	{ "build", "progress", 0, is_all },
	{ "build", "push", 0, "nothing is sent to registries" },
	{ "build", "load", 0, is_all },
	{ "events", "since", 0, "--after NUMBER begins behind an event" },
	{ "events", "until", 0, "without -f it ends with what there is" },
	{ "events", "filter", 0, json },
	{ "inspect", "format", 'f', "it prints JSON: holt inspect NAME | jq .state" },
	{ "top", "no-stream", 0, "holt top -1 shows it once" },
	{ "mcp add", "yes", 'y',
	  "a name stands before a command: holt mcp add NAME -- npx -y PACKAGE" },
	{ "mcp add", "client-id", 0, no_login },
	{ "mcp add", "client-secret", 0, no_login },
	{ "mcp add", "callback-port", 0, no_login },
	{ "mcp add", "trust", 0, "\"approval\": \"allow\" of the entry allows its calls" },
	{ "mcp add", "timeout", 0, "\"timeoutSeconds\" of the entry is the limit of a call" },
	{ "mcp add", "include-tools", 0, "\"allowTools\" of the entry has them" },
	{ "mcp add", "exclude-tools", 0, "\"denyTools\" of the entry has them" },
	{ "ls|ps|top|events|images|images ls|images inspect|version|logs", "format", 0, json },
	{ "ls|ps|top|images|images ls|diff", "no-trunc", 0, is_all },
};

int habits_fail(const char *word, const char *meant, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		if (strcmp(others[i].word, word) == 0)
			return err_set(e, ERR_INVALID, "there is no verb '%s': %s", word,
				       others[i].says);
	}
	for (size_t i = 0; i < ARRAY_LEN(moved); i++) {
		if (strcmp(moved[i].word, word) == 0)
			meant = moved[i].verb;
	}
	return meant ? err_set(e, ERR_INVALID, "there is no verb '%.40s'; did you mean '%s'?", word,
			       meant)
		     : err_set(e, ERR_INVALID, "there is no verb '%.40s'; 'holt help' lists them",
			       word);
}

static bool is_among(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (; *list; list += strcspn(list, "|"), list += *list == '|') {
		if (strcspn(list, "|") == n && memcmp(list, name, n) == 0)
			return true;
	}
	return false;
}

struct option_row *habits_rows(const struct verb *v, size_t *ret_n)
{
	const struct option_table *own = v->options;
	struct option_row *rows = calloc(own->n + ARRAY_LEN(options), sizeof(*rows));
	size_t n = own->n;

	if (!rows)
		return NULL;
	memcpy(rows, own->rows, n * sizeof(*rows));
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		if (is_among(options[i].verbs, v->name))
			rows[n++] = (struct option_row){ .name = options[i].name,
							 .letter = options[i].letter,
							 .kind = OPTION_ELSEWHERE,
							 .doc = options[i].says };
	}
	*ret_n = n;
	return rows;
}
