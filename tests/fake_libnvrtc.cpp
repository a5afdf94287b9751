// An NVRTC that answers as the variables FAKE_NVRTC_... say. With -DBARE it has only the call for its version.
#include <cstdlib>
#include <cstring>

static int told(const char *name, int otherwise) {
    const char *value = std::getenv(name);
    return value ? std::atoi(value) : otherwise;
}

extern "C" {
int nvrtcVersion(int *major, int *minor) {
    *major = told("FAKE_NVRTC_MAJOR", 13);
    *minor = 0;
    return told("FAKE_NVRTC_VERSION", 0);
}
#ifndef BARE
int nvrtcGetNumSupportedArchs(int *count) {
    *count = 1;
    return 0;
}
int nvrtcGetSupportedArchs(int *archs) {
    archs[0] = told("FAKE_NVRTC_ARCH", 90);
    return 0;
}
int nvrtcCreateProgram(void **program, const char *, const char *, int, const char *const *, const char *const *) {
    static int there;
    *program = &there;
    return 0;
}
int nvrtcDestroyProgram(void **) { return 0; }
int nvrtcCompileProgram(void *, int, const char *const *) { return told("FAKE_NVRTC_COMPILE", 0); }
// The least that passes for PTX; as a log it does no harm.
static const char text[] = ".version";
static int size_of_text(std::size_t *size) {
    *size = sizeof text;
    return 0;
}
static int copy_text(char *target) {
    std::memcpy(target, text, sizeof text);
    return 0;
}
int nvrtcGetProgramLogSize(void *, std::size_t *size) { return size_of_text(size); }
int nvrtcGetProgramLog(void *, char *log) { return copy_text(log); }
int nvrtcGetPTXSize(void *, std::size_t *size) { return size_of_text(size); }
int nvrtcGetPTX(void *, char *text) { return copy_text(text); }
int nvrtcGetCUBINSize(void *, std::size_t *size) { return size_of_text(size); }
int nvrtcGetCUBIN(void *, char *image) { return copy_text(image); }
#endif
}
