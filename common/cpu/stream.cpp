// Streams, events and graphs. Work is done when it is enqueued, in the calling thread, so every order that a
// program can ask for is kept; events hold the host's time; capturing a stream records operations for later.
#include "runtime.h"

#include <time.h>

#include <memory>
#include <set>
#include <vector>

typedef std::function<cudaError_t()> Operation;

struct CUgraphNode_st {
    Operation run;
};
struct CUgraph_st {
    std::vector<std::shared_ptr<CUgraphNode_st>> nodes;
};
struct CUgraphExec_st {
    std::vector<std::shared_ptr<CUgraphNode_st>> nodes;
};

struct Capture {
    cudaStream_t origin;
    cudaStreamCaptureMode mode;
    cudaGraph_t graph;
    bool spoilt;
};

struct CUstream_st {
    unsigned flags;
    int priority;
    Capture *capture;
    bool unjoined; // has captured work that no other stream waits for
};

struct CUevent_st {
    unsigned flags;
    bool recorded;
    timespec time;
    Capture *capture;
};

namespace cuda_cpu
{
static auto &streams = *new std::set<cudaStream_t>();
static auto &events = *new std::set<cudaEvent_t>();
static auto &graphs = *new std::set<cudaGraph_t>();
static auto &execs = *new std::set<cudaGraphExec_t>();
static Capture *capture = nullptr; // the one under way

static bool is_default(cudaStream_t s)
{
    return s == nullptr || s == cudaStreamLegacy || s == cudaStreamPerThread;
}

cudaError_t check_stream(cudaStream_t s)
{
    return is_default(s) || streams.count(s) ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

bool capture_forbids()
{
    if (!capture || capture->mode == cudaStreamCaptureModeRelaxed) return false;
    capture->spoilt = true;
    return true;
}

cudaError_t stream_operation(cudaStream_t stream, Operation operation)
{
    if (cudaError_t error = check_stream(stream)) return error;
    if (is_default(stream)) {
        if (capture && stream != cudaStreamPerThread &&
            !(capture->origin->flags & cudaStreamNonBlocking)) {
            capture->spoilt = true;
            return cudaErrorStreamCaptureImplicit;
        }
        return operation();
    }
    if (!stream->capture) return operation();
    if (stream->capture->spoilt) return cudaErrorStreamCaptureInvalidated;
    stream->unjoined = stream != stream->capture->origin;
    stream->capture->graph->nodes.push_back(
        std::make_shared<CUgraphNode_st>(CUgraphNode_st{operation}));
    return cudaSuccess;
}

bool is_capturing(cudaStream_t s) { return !is_default(s) && streams.count(s) && s->capture; }
} // namespace cuda_cpu

using namespace cuda_cpu;

static cudaError_t create_stream(const char *name, cudaStream_t *stream, unsigned flags,
                                 int priority)
{
    return api(name, 0, arguments("%u, %d", flags, priority), [&]() -> cudaError_t {
        if (!stream || flags > cudaStreamNonBlocking) return cudaErrorInvalidValue;
        *stream = new CUstream_st{flags,
                                  priority > 0    ? 0
                                  : priority < -5 ? -5
                                                  : priority,
                                  nullptr, false};
        streams.insert(*stream);
        return cudaSuccess;
    });
}
cudaError_t cudaStreamCreate(cudaStream_t *s) { return create_stream("cudaStreamCreate", s, 0, 0); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags)
{
    return create_stream("cudaStreamCreateWithFlags", s, flags, 0);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, unsigned flags, int priority)
{
    return create_stream("cudaStreamCreateWithPriority", s, flags, priority);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    return api("cudaDeviceGetStreamPriorityRange", 0, "", [&] {
        if (least) *least = 0;
        if (greatest) *greatest = -5;
        return cudaSuccess;
    });
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    return api("cudaStreamDestroy", 0, arguments("%p", (void *)s), [&]() -> cudaError_t {
        if (is_default(s) || !streams.erase(s)) return cudaErrorInvalidResourceHandle;
        delete s;
        return cudaSuccess;
    });
}

static cudaError_t wait_for_stream(const char *name, cudaStream_t s)
{
    return api(name, SYNC, arguments("%p", (void *)s), [&]() -> cudaError_t {
        if (cudaError_t error = check_stream(s)) return error;
        if (!is_capturing(s)) return cudaSuccess;
        s->capture->spoilt = true;
        return cudaErrorStreamCaptureUnsupported;
    });
}
cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    return wait_for_stream("cudaStreamSynchronize", s);
}
cudaError_t cudaStreamQuery(cudaStream_t s) { return wait_for_stream("cudaStreamQuery", s); }

cudaError_t cudaStreamGetFlags(cudaStream_t s, unsigned *flags)
{
    return api("cudaStreamGetFlags", 0, "", [&] {
        return check_stream(s) ? cudaErrorInvalidResourceHandle
                               : (*flags = is_default(s) ? 0 : s->flags, cudaSuccess);
    });
}
cudaError_t cudaStreamGetPriority(cudaStream_t s, int *priority)
{
    return api("cudaStreamGetPriority", 0, "", [&] {
        return check_stream(s) ? cudaErrorInvalidResourceHandle
                               : (*priority = is_default(s) ? 0 : s->priority, cudaSuccess);
    });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned)
{
    return api("cudaStreamWaitEvent", 0, arguments("%p, %p", (void *)s, (void *)e),
               [&]() -> cudaError_t {
                   if (check_stream(s) || !events.count(e)) return cudaErrorInvalidResourceHandle;
                   if (!e->capture || e->capture != capture || is_default(s)) return cudaSuccess;
                   s->capture = capture; // joins the capture
                   return cudaSuccess;
               });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t function, void *data)
{
    return api("cudaLaunchHostFunc", 0, arguments("%p", (void *)s), [&]() -> cudaError_t {
        if (!function) return cudaErrorInvalidValue;
        return stream_operation(s, [=] { return function(data), cudaSuccess; });
    });
}

cudaError_t cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t callback, void *data,
                                  unsigned)
{
    return api("cudaStreamAddCallback", 0, arguments("%p", (void *)s), [&]() -> cudaError_t {
        if (!callback) return cudaErrorInvalidValue;
        return stream_operation(s, [=] { return callback(s, cudaSuccess, data), cudaSuccess; });
    });
}

// ---- Events ----

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags)
{
    return api("cudaEventCreateWithFlags", 0, arguments("%u", flags), [&]() -> cudaError_t {
        if (!e) return cudaErrorInvalidValue;
        *e = new CUevent_st{flags, false, {}, nullptr};
        events.insert(*e);
        return cudaSuccess;
    });
}

cudaError_t cudaEventCreate(cudaEvent_t *e)
{
    return api("cudaEventCreate", 0, "", [&]() -> cudaError_t {
        if (!e) return cudaErrorInvalidValue;
        *e = new CUevent_st{0, false, {}, nullptr};
        events.insert(*e);
        return cudaSuccess;
    });
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    return api("cudaEventDestroy", 0, arguments("%p", (void *)e), [&]() -> cudaError_t {
        if (!events.erase(e)) return cudaErrorInvalidResourceHandle;
        delete e;
        return cudaSuccess;
    });
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    return api("cudaEventRecord", 0, arguments("%p, %p", (void *)e, (void *)s),
               [&]() -> cudaError_t {
                   if (!events.count(e) || check_stream(s)) return cudaErrorInvalidResourceHandle;
                   e->capture = is_capturing(s) ? s->capture : nullptr;
                   if (e->capture) s->unjoined = false; // the event stands for it
                   e->recorded = true;
                   clock_gettime(CLOCK_MONOTONIC, &e->time);
                   return cudaSuccess;
               });
}

static cudaError_t wait_for_event(const char *name, cudaEvent_t e)
{
    return api(name, SYNC, arguments("%p", (void *)e), [&]() -> cudaError_t {
        if (!events.count(e)) return cudaErrorInvalidResourceHandle;
        return e->capture ? cudaErrorCapturedEvent : cudaSuccess;
    });
}
cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    return wait_for_event("cudaEventSynchronize", e);
}
cudaError_t cudaEventQuery(cudaEvent_t e) { return wait_for_event("cudaEventQuery", e); }

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b)
{
    return api("cudaEventElapsedTime", 0, arguments("%p, %p", (void *)a, (void *)b),
               [&]() -> cudaError_t {
                   if (!ms) return cudaErrorInvalidValue;
                   for (cudaEvent_t e : {a, b})
                       if (!events.count(e) || !e->recorded || e->flags & cudaEventDisableTiming)
                           return cudaErrorInvalidResourceHandle;
                   *ms = (float)((double)(b->time.tv_sec - a->time.tv_sec) * 1e3 +
                                 (double)(b->time.tv_nsec - a->time.tv_nsec) * 1e-6);
                   return cudaSuccess;
               });
}

// ---- Graphs ----

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode)
{
    return api("cudaStreamBeginCapture", 0, arguments("%p, %d", (void *)s, mode),
               [&]() -> cudaError_t {
                   if (is_default(s)) return cudaErrorStreamCaptureUnsupported;
                   if (check_stream(s)) return cudaErrorInvalidResourceHandle;
                   if (capture) return cudaErrorIllegalState;
                   capture = s->capture = new Capture{s, mode, new CUgraph_st(), false};
                   return cudaSuccess;
               });
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *graph)
{
    return api("cudaStreamEndCapture", 0, arguments("%p", (void *)s), [&]() -> cudaError_t {
        if (!graph) return cudaErrorInvalidValue;
        *graph = nullptr;
        if (!is_capturing(s)) return cudaErrorIllegalState;
        if (s->capture->origin != s) return cudaErrorStreamCaptureUnmatched;
        cudaError_t error = capture->spoilt ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
        for (cudaStream_t t : streams) {
            if (t->capture != capture) continue;
            if (!error && t->unjoined) error = cudaErrorStreamCaptureUnjoined;
            t->capture = nullptr;
            t->unjoined = false;
        }
        for (cudaEvent_t e : events)
            if (e->capture == capture) e->capture = nullptr;
        if (error) {
            delete capture->graph;
        } else {
            *graph = capture->graph;
            graphs.insert(*graph);
        }
        delete capture;
        capture = nullptr;
        return error;
    });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus *status)
{
    return api("cudaStreamIsCapturing", 0, arguments("%p", (void *)s), [&]() -> cudaError_t {
        if (!status || check_stream(s)) return cudaErrorInvalidValue;
        *status = !is_capturing(s)     ? cudaStreamCaptureStatusNone
                  : s->capture->spoilt ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
        return cudaSuccess;
    });
}

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned)
{
    return api("cudaGraphCreate", 0, "", [&]() -> cudaError_t {
        if (!graph) return cudaErrorInvalidValue;
        graphs.insert(*graph = new CUgraph_st());
        return cudaSuccess;
    });
}

// Nodes run in the order in which they were added: a node can only depend on earlier ones.
static cudaError_t add_node(const char *name, cudaGraphNode_t *node, cudaGraph_t graph,
                            const cudaGraphNode_t *dependencies, size_t n, Operation operation)
{
    return api(name, 0, arguments("%p", (void *)graph), [&]() -> cudaError_t {
        if (!node || !graphs.count(graph) || !operation || (n && !dependencies))
            return cudaErrorInvalidValue;
        for (size_t i = 0; i < n; i++) {
            bool known = false;
            for (auto &other : graph->nodes) known |= other.get() == dependencies[i];
            if (!known) return cudaErrorInvalidValue;
        }
        graph->nodes.push_back(std::make_shared<CUgraphNode_st>(CUgraphNode_st{operation}));
        *node = graph->nodes.back().get();
        return cudaSuccess;
    });
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *dependencies, size_t n,
                                   const cudaKernelNodeParams *p)
{
    Operation operation;
    cudaError_t error = p ? capture_kernel(p->func, p->gridDim, p->blockDim, p->kernelParams,
                                           p->sharedMemBytes, &operation)
                          : cudaErrorInvalidValue;
    if (error) operation = nullptr;
    return add_node("cudaGraphAddKernelNode", node, graph, dependencies, n, operation);
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                  const cudaGraphNode_t *dependencies, size_t n)
{
    return add_node("cudaGraphAddEmptyNode", node, graph, dependencies, n,
                    [] { return cudaSuccess; });
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph,
                                     const cudaGraphNode_t *dependencies, size_t n, void *dst,
                                     const void *src, size_t count, cudaMemcpyKind kind)
{
    return add_node("cudaGraphAddMemcpyNode1D", node, graph, dependencies, n,
                    [=] { return copy(dst, src, count, kind); });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    return api("cudaGraphGetNodes", 0, "", [&]() -> cudaError_t {
        if (!graphs.count(graph) || !count) return cudaErrorInvalidValue;
        for (size_t i = 0; nodes && i < graph->nodes.size() && i < *count; i++)
            nodes[i] = graph->nodes[i].get();
        if (!nodes || *count > graph->nodes.size()) *count = graph->nodes.size();
        return cudaSuccess;
    });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    return api("cudaGraphInstantiate", 0, "", [&]() -> cudaError_t {
        if (!exec || !graphs.count(graph)) return cudaErrorInvalidValue;
        execs.insert(*exec = new CUgraphExec_st{graph->nodes});
        return cudaSuccess;
    });
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, cudaGraphNode_t *,
                                 char *, size_t)
{
    return cudaGraphInstantiate(exec, graph, 0ull);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          unsigned long long)
{
    return cudaGraphInstantiate(exec, graph, 0ull);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t)
{
    return api("cudaGraphUpload", 0, "",
               [&] { return execs.count(exec) ? cudaSuccess : cudaErrorInvalidValue; });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s)
{
    return api("cudaGraphLaunch", 0, arguments("%p, %p", (void *)exec, (void *)s),
               [&]() -> cudaError_t {
                   if (!execs.count(exec)) return cudaErrorInvalidValue;
                   return stream_operation(s, [nodes = exec->nodes]() -> cudaError_t {
                       for (auto &node : nodes)
                           if (cudaError_t error = node->run()) return error;
                       return cudaSuccess;
                   });
               });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    return api("cudaGraphExecDestroy", 0, "", [&]() -> cudaError_t {
        if (!execs.erase(exec)) return cudaErrorInvalidValue;
        delete exec;
        return cudaSuccess;
    });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    return api("cudaGraphDestroy", 0, "", [&]() -> cudaError_t {
        if (!graphs.erase(graph)) return cudaErrorInvalidValue;
        delete graph;
        return cudaSuccess;
    });
}
