/* `holt init`: a file to begin with, in the current folder. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/common/file.h"
#include "cli/common/verb.h"

static const char build_text[] = "{\n"
				 "  \"base\": \"host\",\n"
				 "  \"workdir\": \"/workspace\",\n"
				 "  \"env\": { \"LANG\": \"C.UTF-8\" },\n"
				 "  \"files\": [],\n"
				 "  \"run\": [\"echo built > built.txt\"],\n"
				 "  \"cmd\": [\"sh\"]\n"
				 "}\n";

static const char operator_text[] =
	"// The operator's file of Holt: what its clients may do. `holt config check` reads it.\n"
	"{\n"
	"  // The first rule that matches decides; \"ask\" has a person decide.\n"
	"  \"policy\": {\n"
	"    \"default\": \"allow\",\n"
	"    \"rules\": [\n"
	"      { \"name\": \"pushes\", \"actions\": [\"sandbox.exec\"],\n"
	"        \"when\": { \"/command\": \"git push*\" }, \"then\": \"ask\" }\n"
	"    ]\n"
	"  },\n"
	"  // What sandboxes may be made from: \"host\", and names of holt images.\n"
	"  \"images\": [\"*\"],\n"
	"  // What all clients together may use.\n"
	"  \"limits\": { \"sandboxes\": 64 }\n"
	"  // More: secrets, mcpServers, principals, tls (docs/policy.md).\n"
	"}\n";

/* The files that can be written, and what to do with them next. */
static const struct {
	const char *name, *text, *next;
} files[] = {
	{ "holt.json", build_text, "holt build . makes an image of it" },
	{ "config.json", operator_text,
	  "holt serve --config config.json uses it; where one is looked for: man holt-config" },
};

static int init_write(size_t which, struct err *e)
{
	const char *name = files[which].name;
	autoclose int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0 && errno == EEXIST)
		return err_set(e, ERR_NAME_TAKEN, "there is a %s already, which stays as it is",
			       name);
	if (fd < 0)
		return err_sys(e, errno, "make %s", name);
	if (file_write_fd(fd, name, str_of(files[which].text), e) < 0) {
		unlink(name);
		return -1;
	}
	printf("Wrote %s: %s\n", name, files[which].next);
	return 0;
}

static int init_run(const struct verb_input *in, struct err *e)
{
	const char *said = in->n_operands ? in->operands[0] : files[0].name;

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		if (strcmp(said, files[i].name) == 0)
			return init_write(i, e);
	}
	err_set(e, ERR_INVALID, "it writes holt.json or config.json, not \"%.80s\"", said);
	return cli_wrong_usage(in->verb, e);
}

const struct verb init_verb = {
	.name = "init",
	.usage = "[holt.json|config.json]",
	.doc = "Write a holt.json or config.json to start from.",
	.more = "holt.json, from which images are built, or config.json, the operator's file with\n"
		"comments: into this folder, and never over a file that is there.",
	.page = "holt-config",
	.options = &verb_bare,
	.size = sizeof(struct verb_options),
	.max_operands = 1,
	.run = init_run,
};
