/* vcruntime140_threads.dll, which PyTorch's libraries ask for since some version after 2.11 and Wine 8 lacks: of C11's threads what they import. A
 * mutex and a condition are objects on the heap, whose address is the first word of the caller's. */
#include <stdlib.h>
#include <windows.h>

enum { SUCCESS, NO_MEMORY, TIMED_OUT, BUSY, FAILED };

typedef int (*body)(void *);
typedef struct {
  HANDLE handle;
  unsigned id;
} thread;
typedef struct {
  body run;
  void *argument;
} start;

#define EXPORT __declspec(dllexport)

/* Any kind of mutex: this one may be locked again by the thread that has it. None is asked for with a limit of time. */
EXPORT int mtx_init(CRITICAL_SECTION **mutex, int kind) {
  (void)kind;
  if (!(*mutex = malloc(sizeof **mutex))) return NO_MEMORY;
  InitializeCriticalSection(*mutex);
  return SUCCESS;
}

EXPORT int mtx_lock(CRITICAL_SECTION **mutex) {
  EnterCriticalSection(*mutex);
  return SUCCESS;
}

EXPORT int mtx_unlock(CRITICAL_SECTION **mutex) {
  LeaveCriticalSection(*mutex);
  return SUCCESS;
}

EXPORT void mtx_destroy(CRITICAL_SECTION **mutex) {
  DeleteCriticalSection(*mutex);
  free(*mutex);
}

EXPORT int cnd_init(CONDITION_VARIABLE **condition) {
  if (!(*condition = malloc(sizeof **condition))) return NO_MEMORY;
  InitializeConditionVariable(*condition);
  return SUCCESS;
}

EXPORT int cnd_wait(CONDITION_VARIABLE **condition, CRITICAL_SECTION **mutex) {
  return SleepConditionVariableCS(*condition, *mutex, INFINITE) ? SUCCESS : FAILED;
}

EXPORT int cnd_signal(CONDITION_VARIABLE **condition) {
  WakeConditionVariable(*condition);
  return SUCCESS;
}

EXPORT int cnd_broadcast(CONDITION_VARIABLE **condition) {
  WakeAllConditionVariable(*condition);
  return SUCCESS;
}

EXPORT void cnd_destroy(CONDITION_VARIABLE **condition) { free(*condition); }

static DWORD WINAPI run(void *argument) {
  const start begun = *(start *)argument;
  free(argument);
  return (DWORD)begun.run(begun.argument);
}

EXPORT int thrd_create(thread *created, body run_this, void *argument) {
  start *begun = malloc(sizeof *begun);
  if (!begun) return NO_MEMORY;
  *begun = (start){run_this, argument};
  DWORD id;
  created->handle = CreateThread(NULL, 0, run, begun, 0, &id);
  created->id = id;
  if (created->handle) return SUCCESS;
  free(begun);
  return FAILED;
}

EXPORT int thrd_join(thread joined, int *result) {
  DWORD status;
  if (WaitForSingleObject(joined.handle, INFINITE) != WAIT_OBJECT_0) return FAILED;
  if (!GetExitCodeThread(joined.handle, &status)) return FAILED;
  if (result) *result = (int)status;
  CloseHandle(joined.handle);
  return SUCCESS;
}
