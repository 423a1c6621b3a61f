/* spirv-val for programs under Wine: runs the system's own, and ends as that does. Wine starts a program of the system, but neither waits for
 * it nor tells how it ended; so a shell runs it, from a script that names its arguments, and writes its status into a file. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

enum { PATH_LENGTH = 4096, LOOK_EVERY_MS = 10, LOOKS = 6000 };

/* Of Wine's kernel32: the name that the system has for a file, on the process's heap. */
typedef char *(CDECL *unix_name)(const WCHAR *);

static unix_name unix_name_of;

static void quoted(FILE *to, const char *text) {
    fputc('\'', to);
    for (; *text; text++) fputs(*text == '\'' ? "'\\''" : (char[]){*text, 0}, to);
    fputc('\'', to);
}

/* The name that the system has for a file of Windows, quoted for a shell. */
static void quoted_file(FILE *to, const char *file) {
    WCHAR wide[PATH_LENGTH];
    MultiByteToWideChar(CP_ACP, 0, file, -1, wide, PATH_LENGTH);
    char *name = unix_name_of(wide);
    quoted(to, name ? name : file);
}

int main(int count, char **arguments) {
    unix_name_of = (unix_name)(void *)GetProcAddress(GetModuleHandleA("kernel32"), "wine_get_unix_file_name");
    char folder[PATH_LENGTH], script[PATH_LENGTH], said[PATH_LENGTH], status[PATH_LENGTH], line[PATH_LENGTH];
    if (!unix_name_of || !GetTempPathA(sizeof folder, folder)) return 127;
    snprintf(script, sizeof script, "%sspirv-val-%lu.sh", folder, GetCurrentProcessId());
    snprintf(said, sizeof said, "%s.said", script);
    snprintf(status, sizeof status, "%s.status", script);

    FILE *file = fopen(script, "wb");
    if (!file) return 127;
    fputs("spirv-val", file);
    for (int i = 1; i < count; i++) {
        fputc(' ', file);
        if (GetFileAttributesA(arguments[i]) == INVALID_FILE_ATTRIBUTES) quoted(file, arguments[i]);
        else quoted_file(file, arguments[i]);
    }
    fputs(" >", file);
    quoted_file(file, said);
    fputs(" 2>&1\necho $? >", file);
    quoted_file(file, status);
    fputs(".part\nmv ", file);
    quoted_file(file, status);
    fputs(".part ", file);
    quoted_file(file, status);
    fputc('\n', file);
    fclose(file);

    WCHAR wide[PATH_LENGTH];
    MultiByteToWideChar(CP_ACP, 0, script, -1, wide, PATH_LENGTH);
    snprintf(line, sizeof line, "sh \"%s\"", unix_name_of(wide));
    STARTUPINFOA start = {.cb = sizeof start};
    PROCESS_INFORMATION process;
    int ended = 127;
    if (CreateProcessA("Z:\\bin\\sh", line, NULL, NULL, FALSE, 0, NULL, NULL, &start, &process)) {
        for (int looks = 0; looks < LOOKS && GetFileAttributesA(status) == INVALID_FILE_ATTRIBUTES; looks++)
            Sleep(LOOK_EVERY_MS);
        if ((file = fopen(status, "rb"))) {
            if (fscanf(file, "%d", &ended) != 1) ended = 127;
            fclose(file);
        }
        if ((file = fopen(said, "rb"))) {
            for (int c; (c = fgetc(file)) != EOF;) fputc(c, stderr);
            fclose(file);
        }
    }
    DeleteFileA(script);
    DeleteFileA(said);
    DeleteFileA(status);
    return ended;
}
