#include "cli/import/own.h"

#include <stdio.h>

#include "cli/common/safe.h"
#include "cli/import/file.h"
#include "guard/gate/gate.h"

enum { PRETTY_MAX = 4 << 20 };

int own_edit(const struct config *c, own_edit_fn edit, const void *data, struct err *e)
{
	autobuf struct buf was = BUF_INIT(CONFIG_BYTES_MAX), now = BUF_INIT(CONFIG_BYTES_MAX);
	AUTO(config_unref) struct config *checked = NULL;
	char path[PATH_MAX];
	struct stat st;

	if (import_file_open(config_path(c), path, &was, &st, e) < 0 ||
	    edit(data, buf_str(&was), &now, e) < 0)
		return -1;
	checked = config_parse(buf_str(&now), "the new file", e);
	if (!checked || gate_check_config(checked, e) < 0)
		return -1;
	return import_file_write(path, 0, &st, buf_str(&now), e);
}

static int own_edit_add(const void *data, struct str text, struct buf *to, struct err *e)
{
	autobuf struct buf servers = BUF_INIT(PRETTY_MAX), inputs = BUF_INIT(PRETTY_MAX);
	const struct foreign_found *found = data;

	if (import_lines(buf_str(&found->servers), &servers, e) < 0 ||
	    import_lines(buf_str(&found->inputs), &inputs, e) < 0)
		return -1;
	return config_add(text, buf_str(&servers), buf_str(&inputs), to, e);
}

int own_add(const struct config *c, const struct foreign_found *found, struct err *e)
{
	return own_edit(c, own_edit_add, found, e);
}

void own_note(void *data, struct str server, struct str text)
{
	fputs("holt: ", stderr);
	if (server.p) {
		safe_short(stderr, server, 64);
		fputs(": ", stderr);
	}
	safe_puts(stderr, text);
}
