// A CUDA driver that answers as the variables FAKE_... say, for tests of what is said about drivers of all kinds.
// With -DBARE it has no calls but the one for its version, as a driver much too old.
#include <cstdlib>
#include <cstring>

static int told(const char *name, int otherwise) {
    const char *value = std::getenv(name);
    return value ? std::atoi(value) : otherwise;
}

extern "C" {
int cuDriverGetVersion(int *version) {
    *version = told("FAKE_VERSION", 13000);
    return 0;
}
#ifndef BARE
int cuInit(unsigned) { return told("FAKE_INIT", 0); }
int cuDeviceGetCount(int *count) {
    *count = told("FAKE_COUNT", 1);
    return 0;
}
int cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int) {
    // 75 and 76 are the architecture, the others limits.
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 1024;
    return 0;
}
int cuDeviceGetName(char *name, int length, int) {
    std::strncpy(name, "a GPU that is not there", length);
    return 0;
}
int cuDeviceGetUuid_v2(char *uuid, int) {
    std::memset(uuid, 1, 16);
    return 0;
}
int cuDeviceTotalMem_v2(std::size_t *bytes, int) {
    *bytes = 1 << 30;
    return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int) {
    static int there;
    *context = &there;
    return told("FAKE_RETAIN", 0);
}
int cuMemAlloc_v2(unsigned long long *, std::size_t) { return told("FAKE_ALLOC", 2); }
int cuMemGetInfo_v2(std::size_t *free, std::size_t *total) {
    *free = 1 << 20;
    *total = 1 << 30;
    return 0;
}
int cuGetErrorName(int, const char **text) {
    *text = "CUDA_ERROR_OF_A_TEST";
    return 0;
}
int cuGetErrorString(int, const char **text) {
    *text = "words of the driver";
    return 0;
}
int cuCtxGetCurrent(void **context) {
    *context = nullptr;
    return 0;
}
int cuCtxSetCurrent(void *) { return 0; }
int cuCtxSynchronize() { return 0; }
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuEventCreate(void **, unsigned) { return 0; }
int cuEventDestroy_v2(void *) { return 0; }
int cuEventElapsedTime(float *, void *, void *) { return 0; }
int cuEventRecord(void *, void *) { return 0; }
int cuStreamWaitEvent(void *, void *, unsigned) { return 0; }
int cuCtxEnablePeerAccess(void *, unsigned) { return 0; }
int cuDeviceCanAccessPeer(int *can, int, int) {
    *can = told("FAKE_PEERS", 1);
    return 0;
}
int cuFuncGetAttribute(int *, int, void *) { return 0; }
int cuFuncSetAttribute(void *, int, int) { return 0; }
int cuGraphDestroy(void *) { return 0; }
int cuGraphExecDestroy(void *) { return 0; }
int cuGraphInstantiateWithFlags(void **, void *, unsigned long long) { return 0; }
int cuGraphLaunch(void *, void *) { return 0; }
#ifndef WITHOUT_LAUNCH
int cuLaunchKernelEx() { return 1; }
#endif
int cuMemFree_v2(unsigned long long) { return 0; }
int cuMemcpyDtoDAsync_v2(unsigned long long, unsigned long long, std::size_t, void *) { return 0; }
int cuMemcpyDtoH_v2(void *, unsigned long long, std::size_t) { return 0; }
int cuMemcpyHtoD_v2(unsigned long long, const void *, std::size_t) { return 0; }
int cuMemsetD8Async(unsigned long long, unsigned char, std::size_t, void *) { return 0; }
int cuModuleGetFunction(void **, void *, const char *) { return 0; }
int cuModuleLoadDataEx(void **module, const void *, unsigned, void *, void *) {
    static int there;
    *module = &there;
    return told("FAKE_LOAD", 0);
}
int cuModuleUnload(void *) { return 0; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *, void *, int, std::size_t) { return 0; }
int cuOccupancyMaxActiveClusters(int *, void *, const void *) { return 0; }
int cuStreamBeginCapture_v2(void *, int) { return 0; }
int cuStreamCreate(void **, unsigned) { return 0; }
int cuStreamDestroy_v2(void *) { return 0; }
int cuStreamEndCapture(void *, void **) { return 0; }
int cuStreamSynchronize(void *) { return 0; }
#endif
}
