#pragma once
/* What the engine says of a sandbox's files and processes on both sides of the wire; see box.h. */

enum { FILE_READ_MAX = 8 * 1024 * 1024, FILE_WRITE_MAX = 64 * 1024 * 1024, FILE_LIST_MAX = 1024 };

enum { PROCESS_LIST_MAX = 512, PROCESS_COMMAND_MAX = 256 };

enum file_type { FILE_REGULAR, FILE_DIRECTORY, FILE_SYMLINK, FILE_OTHER };
