// Streams, events and graphs. Work is done when it is enqueued, in the calling thread, so every order that a
// program can ask for is kept; events hold the host's time; capturing a stream records operations for later.
#include "runtime.h"

#include <time.h>

#include <memory>
#include <vector>

struct CUgraphNode_st {
    cuda_cpu::Operation run;
};
// Nodes run in the order in which they were added: each depends on earlier ones only.
struct CUgraph_st {
    std::vector<std::shared_ptr<CUgraphNode_st>> nodes;
    cudaGraphNode_t add(const cuda_cpu::Operation &operation)
    {
        nodes.push_back(std::make_shared<CUgraphNode_st>(CUgraphNode_st{operation}));
        return nodes.back().get();
    }
};
struct CUgraphExec_st : CUgraph_st {
};

struct Capture {
    cudaStream_t origin;
    cudaStreamCaptureMode mode;
    CUgraph_st graph;
    bool spoilt;
};

struct CUstream_st {
    unsigned flags;
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
static auto &streams = *new Handles<CUstream_st>(cudaErrorInvalidResourceHandle);
static auto &events = *new Handles<CUevent_st>(cudaErrorInvalidResourceHandle);
static auto &graphs = *new Handles<CUgraph_st>(cudaErrorInvalidValue);
static auto &execs = *new Handles<CUgraphExec_st>(cudaErrorInvalidValue);
static Capture *capture = nullptr; // the one under way

static bool is_default(cudaStream_t s)
{
    return s == nullptr || s == cudaStreamLegacy || s == cudaStreamPerThread;
}

bool is_capturing(cudaStream_t s) { return streams.count(s) && s->capture; }

cudaError_t check_stream(cudaStream_t s)
{
    return is_default(s) || streams.count(s) ? cudaSuccess : streams.unknown;
}

bool capture_forbids()
{
    if (!capture || capture->mode == cudaStreamCaptureModeRelaxed) return false;
    capture->spoilt = true;
    return true;
}

cudaError_t enqueue(cudaStream_t stream, const Operation &operation)
{
    if (cudaError_t error = check_stream(stream)) return error;
    if (is_default(stream) && capture && stream != cudaStreamPerThread &&
        !(capture->origin->flags & cudaStreamNonBlocking)) {
        capture->spoilt = true;
        return cudaErrorStreamCaptureImplicit;
    }
    if (!is_capturing(stream)) return operation();
    if (stream->capture->spoilt) return cudaErrorStreamCaptureInvalidated;
    stream->unjoined = stream != stream->capture->origin;
    stream->capture->graph.add(operation);
    return cudaSuccess;
}
} // namespace cuda_cpu

using namespace cuda_cpu;

API(cudaStreamCreateWithFlags, 0, (cudaStream_t *stream, unsigned flags), (stream, flags))
{
    if (flags > cudaStreamNonBlocking) return cudaErrorInvalidValue;
    return streams.create(stream, {flags, nullptr, false});
}
API(cudaStreamCreate, 0, (cudaStream_t *s), (s)) { return do_cudaStreamCreateWithFlags(s, 0); }
API(cudaStreamCreateWithPriority, 0, (cudaStream_t *stream, unsigned flags, int priority),
    (stream, flags, priority))
{
    return do_cudaStreamCreateWithFlags(stream, flags);
}

API(cudaDeviceGetStreamPriorityRange, 0, (int *least, int *greatest), (least, greatest))
{
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return cudaSuccess;
}

API(cudaStreamDestroy, 0, (cudaStream_t s), (s)) { return streams.destroy(s); }

API(cudaStreamSynchronize, SYNC, (cudaStream_t s), (s))
{
    if (!is_capturing(s)) return check_stream(s);
    s->capture->spoilt = true;
    return cudaErrorStreamCaptureUnsupported;
}
API(cudaStreamQuery, SYNC, (cudaStream_t s), (s)) { return do_cudaStreamSynchronize(s); }

API(cudaStreamWaitEvent, 0, (cudaStream_t s, cudaEvent_t e, unsigned flags), (s, e, flags))
{
    if (check_stream(s) || !events.count(e)) return cudaErrorInvalidResourceHandle;
    if (e->capture && e->capture == capture && !is_default(s)) s->capture = capture; // joins it
    return cudaSuccess;
}

API(cudaLaunchHostFunc, 0, (cudaStream_t s, cudaHostFn_t function, void *data), (s, function, data))
{
    if (!function) return cudaErrorInvalidValue;
    return enqueue(s, [=] { return function(data), cudaSuccess; });
}

API(cudaStreamAddCallback, 0,
    (cudaStream_t s, cudaStreamCallback_t callback, void *data, unsigned flags),
    (s, callback, data, flags))
{
    if (!callback) return cudaErrorInvalidValue;
    return enqueue(s, [=] { return callback(s, cudaSuccess, data), cudaSuccess; });
}

// ---- Events ----

API(cudaEventCreateWithFlags, 0, (cudaEvent_t *e, unsigned flags), (e, flags))
{
    return events.create(e, {flags, false, {}, nullptr});
}
API(cudaEventCreate, 0, (cudaEvent_t *e), (e)) { return do_cudaEventCreateWithFlags(e, 0); }

API(cudaEventDestroy, 0, (cudaEvent_t e), (e)) { return events.destroy(e); }

API(cudaEventRecord, 0, (cudaEvent_t e, cudaStream_t s), (e, s))
{
    if (!events.count(e) || check_stream(s)) return cudaErrorInvalidResourceHandle;
    e->capture = is_capturing(s) ? s->capture : nullptr;
    if (e->capture) s->unjoined = false; // the event stands for it
    e->recorded = true;
    clock_gettime(CLOCK_MONOTONIC, &e->time);
    return cudaSuccess;
}

API(cudaEventSynchronize, SYNC, (cudaEvent_t e), (e))
{
    if (!events.count(e)) return events.unknown;
    return e->capture ? cudaErrorCapturedEvent : cudaSuccess;
}
API(cudaEventQuery, SYNC, (cudaEvent_t e), (e)) { return do_cudaEventSynchronize(e); }

API(cudaEventElapsedTime, 0, (float *ms, cudaEvent_t a, cudaEvent_t b), (ms, a, b))
{
    for (cudaEvent_t e : {a, b})
        if (!events.count(e) || !e->recorded || e->flags & cudaEventDisableTiming)
            return cudaErrorInvalidResourceHandle;
    return give(ms, (float)((double)(b->time.tv_sec - a->time.tv_sec) * 1e3 +
                            (double)(b->time.tv_nsec - a->time.tv_nsec) * 1e-6));
}

// ---- Graphs ----

API(cudaStreamBeginCapture, 0, (cudaStream_t s, cudaStreamCaptureMode mode), (s, mode))
{
    if (is_default(s)) return cudaErrorStreamCaptureUnsupported;
    if (check_stream(s)) return cudaErrorInvalidResourceHandle;
    if (capture) return cudaErrorIllegalState;
    capture = s->capture = new Capture{s, mode, {}, false};
    return cudaSuccess;
}

API(cudaStreamEndCapture, 0, (cudaStream_t s, cudaGraph_t *graph), (s, graph))
{
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
    if (!error) graphs.create(graph, capture->graph);
    delete capture;
    capture = nullptr;
    return error;
}

API(cudaGraphCreate, 0, (cudaGraph_t *g, unsigned flags), (g, flags))
{
    return graphs.create(g, {});
}

API(cudaGraphAddKernelNode, 0,
    (cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t n,
     const cudaKernelNodeParams *params),
    (node, graph, dependencies, n, params))
{
    if (!node || !graphs.count(graph) || !params || (n && !dependencies))
        return cudaErrorInvalidValue;
    Operation operation;
    cudaError_t error = launch_operation(*params, &operation);
    if (!error) *node = graph->add(operation);
    return error;
}

API(cudaGraphGetNodes, 0, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count),
    (graph, nodes, count))
{
    if (!graphs.count(graph) || !count) return cudaErrorInvalidValue;
    if (!nodes || *count > graph->nodes.size()) *count = graph->nodes.size();
    for (size_t i = 0; nodes && i < *count; i++) nodes[i] = graph->nodes[i].get();
    return cudaSuccess;
}

API(cudaGraphInstantiate, 0, (cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags),
    (exec, graph, flags))
{
    return graphs.count(graph) ? execs.create(exec, {*graph}) : cudaErrorInvalidValue;
}
API(cudaGraphInstantiateWithFlags, 0,
    (cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags), (exec, graph, flags))
{
    return do_cudaGraphInstantiate(exec, graph, flags);
}

API(cudaGraphLaunch, 0, (cudaGraphExec_t exec, cudaStream_t s), (exec, s))
{
    if (!execs.count(exec)) return cudaErrorInvalidValue;
    return enqueue(s, [nodes = exec->nodes]() -> cudaError_t {
        for (auto &node : nodes)
            if (cudaError_t error = node->run()) return error;
        return cudaSuccess;
    });
}

API(cudaGraphExecDestroy, 0, (cudaGraphExec_t exec), (exec)) { return execs.destroy(exec); }
API(cudaGraphDestroy, 0, (cudaGraph_t graph), (graph)) { return graphs.destroy(graph); }
