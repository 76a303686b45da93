// Turns preprocessed CUDA C++ into C++: the few things that g++ cannot read are replaced, token by token, and
// everything else passes through. Nothing is inserted that holds a newline, so all line numbers stay true.
//
//   kernel<<<grid, block>>>(a, b)   becomes   cuda_cpu::launcher(cuda_cpu::configure(grid, block), ...)(a, b)
//   __shared__ float t[32];         becomes   struct S { float t[32]; }; auto& t = cuda_cpu::shared_variable<0>(&S::t, "t");
//   __global__ void k(int) { }      keeps its body, and registers k for cudaLaunchKernel
//   __constant__ float c[8];        stays a variable, and registers c for cudaMemcpyToSymbol
//   volatile float* s; s[t] += s[t + 1];   lets the lanes of a warp move in step
//   asm("mov.u32 %0, %%smid;" ...)  becomes a call; other PTX is an error
//
// Usage: rewrite < in.ii > out.ii     (nvcc-cpu builds it on first use)
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

struct Token {
    std::string before; // white space, and what needs no rewriting, in front of it
    std::string text;   // as read
    std::string out;    // as written
};
static std::vector<Token> tokens{{"", " ", ""}}; // at both ends one that equals no other
static int size() { return (int)tokens.size(); }

// ---- Reading tokens ----

static bool in_system_header = false;

// A line that starts with '#': a line marker names the file of what follows; a pragma for nvcc is dropped.
static std::string directive(const std::string &line)
{
    static std::string user_file, included; // the latest ones
    char name[4096], flags[16] = "", pragma[16];
    if (sscanf(line.c_str(), "# %*d \"%4095[^\"]\" %15[0-9 ]", name, flags) >= 1) {
        bool was_in_one = in_system_header; // a macro of a system header has the user's file's name
        in_system_header = strchr(flags, '3') && name != user_file;
        if (!in_system_header)
            user_file = name;
        else if (!was_in_one)
            included = name;
        // NVIDIA's own headers, where they are installed, are for its own compiler: all lead to this one.
        if (in_system_header && strstr(name, "crt/host_defines.h")) {
            std::cerr << user_file << ": error: this includes NVIDIA's " << included
                      << ", which the CPU backend does not have\n";
            exit(1);
        }
    }
    if (sscanf(line.c_str(), " # pragma %15s", pragma) == 1)
        for (const char *nvcc : {"unroll", "nounroll", "nv_", "diag_", "hd_warning"})
            if (strncmp(pragma, nvcc, strlen(nvcc)) == 0) return "";
    return line;
}

static bool word_char(char c) { return (c & 0x80) || isalnum(c) || c == '_' || c == '$'; }

// The end of the token that starts at i. Of the operators only a few need to be told from their first character.
static size_t end_of_token(const std::string &s, size_t i)
{
    size_t end = i;
    if (s[i] == '"' || s[i] == '\'') {
        for (end++; s[end] != s[i] && s[end] != '\n';) end += s[end] == '\\' ? 2 : 1;
        return end + 1;
    }
    for (const char *two : {"<<", "::", "->", "=="})
        if (s.compare(i, 2, two) == 0) return i + 2;
    if (!word_char(s[i])) return i + 1;
    // A word, a number as 1'000, or a raw string as u8R"x(...)x"
    while (word_char(s[end]) || (s[end] == '\'' && isdigit(s[i]) && word_char(s[end + 1]))) end++;
    if (s[end] != '"' || s[end - 1] != 'R' || end - i > 3) return end;
    size_t open = s.find('(', end);
    std::string close = ")" + s.substr(end + 1, open - end - 1) + "\"";
    return std::min(s.find(close, open), s.size() - close.size()) + close.size();
}

static void read_tokens(const std::string &s) // which ends in a newline
{
    std::string before;
    bool line_start = true;
    for (size_t i = 0, end; i < s.size(); i = end) {
        if (line_start && s[i] == '#') {
            end = s.find('\n', i);
            before += directive(s.substr(i, end - i));
            if (!in_system_header) continue;
            i = end; // there is nothing to rewrite up to the next line that starts with '#'
            end = std::min(s.find("\n#", i), s.size() - 1);
            before.append(s, i, end - i);
        } else if (strchr(" \t\n\v\f\r", s[i])) {
            end = i + 1;
            before += s[i];
            line_start |= s[i] == '\n';
        } else {
            end = end_of_token(s, i);
            std::string text = s.substr(i, end - i);
            size_t third = s.find_first_not_of(' ', end);
            if (text == "<<" && s[third] == '<' && tokens.back().text != "operator") {
                text = "<<<"; // some formatters write << <
                end = third + 1;
            }
            tokens.push_back({before, text, text});
            before.clear();
            line_start = false;
        }
    }
    tokens.push_back({before, " ", ""});
}

// ---- Moving among tokens ----

// Thrown when something has no end: it is left as it is, for g++ to report.
struct NotFound {
};

// Is word one of words, which spaces separate?
static bool listed(const std::string &word, const char *words)
{
    for (const char *p = words; (p = strstr(p, word.c_str())); p++)
        if ((p == words || p[-1] == ' ') && strchr(" ", p[word.size()])) return true;
    return false;
}
static bool is(int i, const char *words) { return i < size() && listed(tokens[i].text, words); }
static bool is_literal(int i) { return strchr("\"'", tokens[i].text.back()); }
static bool is_word(int i) { return word_char(tokens[i].text[0]) && !is_literal(i); }

// The token that closes the bracket at i, or opens it. For < and > that are no brackets, i itself.
static int partner(int i)
{
    static const std::string brackets = "([{<)]}>";
    size_t own = brackets.find(tokens[i].text);
    int step = own < 4 ? 1 : -1, depth = 0;
    bool angle = own % 4 == 3;
    for (int j = i; j >= 0 && j < size(); j += step) {
        size_t other = brackets.find(tokens[j].text);
        if (other == own) depth++;
        if (other == (own + 4) % 8 && --depth == 0) return j;
        if (angle && is(j, own < 4 ? ") ] } ;" : "( [ { ;")) return i; // the end of what holds i
        if (angle && is(j, own < 4 ? "( [ {" : ") ] }")) j = partner(j);
    }
    if (angle) return i;
    throw NotFound();
}

// The first token from i on, outside of brackets, that is one of words.
static int find(int i, const char *words)
{
    for (; i < size(); i++) {
        if (is(i, words)) return i;
        if (is(i, "( [ {") || (is(i, "<") && is_word(i - 1))) i = partner(i);
    }
    throw NotFound();
}

static std::string text_of(int from, int to)
{
    std::string s;
    for (int i = from; i < to; i++)
        s += (i > from && !tokens[i].before.empty() ? " " : "") + tokens[i].text;
    return s;
}

static void blank(int from, int to)
{
    for (int i = from; i < to; i++) tokens[i].out = "";
}

// The pattern with its $0, $1 ... replaced, and $# by a number of its own.
static std::string fill(const char *pattern, std::initializer_list<std::string> values)
{
    static int unique = 0;
    std::string s;
    for (const char *p = pattern; *p; p++)
        if (*p != '$')
            s += *p;
        else if (*++p == '#')
            s += std::to_string(++unique);
        else
            s += values.begin()[*p - '0'];
    return s;
}

// ---- Launches ----

// First token of the expression that ends before i: k, ns::k, k<float, 256>, kernels[i], object.kernel, (*kernel).
static int start_of_kernel(int i)
{
    for (int t = i - 1;; t--) {
        while (is(t, "]")) t = partner(t) - 1;
        if (is(t, ")")) return partner(t);
        if (is(t, ">")) t = partner(t) - 1;
        if (!is_word(t)) throw NotFound();
        int before = is(t - 1, "template") ? t - 2 : t - 1;
        if (!is(before, ":: . ->")) return t;
        bool global = !is_word(before - 1) && !is(before - 1, ">");
        if (is(before, "::") && (global || is(before - 1, "else do"))) return before;
        t = before;
    }
}

// The first of the three '>' that end the configuration which starts at i.
static int end_of_configuration(int i)
{
    for (; !is(i, ";") && i < size(); i++) {
        if (is(i, "( [ {"))
            i = partner(i);
        else if (is(i, ">") && is(i + 1, ">") && is(i + 2, ">") && !is(i + 3, ">"))
            return i;
    }
    throw NotFound();
}

static int kernel_end = 0; // of the last __global__ function with a body

static void rewrite_launch(int open)
{
    int start = start_of_kernel(open), close = end_of_configuration(open + 1);
    std::string kernel = text_of(start, open);
    blank(start, open + 1);
    blank(close, close + 3);
    tokens[start].out = "::cuda_cpu::launcher(::cuda_cpu::configure(";
    if (start < kernel_end)
        tokens[start].before +=
            "static_assert(false, \"a kernel cannot launch a kernel on the CPU backend\"); ";
    tokens[close].out = fill(
        "), R\"cuda_cpu($0)cuda_cpu\", "
        "[=](auto cuda_cpu_find) -> decltype(cuda_cpu_find($0)) { return cuda_cpu_find($0); }, "
        "[=](auto&... cuda_cpu_args) { $0(cuda_cpu_args...); })",
        {kernel});
}

// ---- Declarations ----

static int in_function = 0; // open functions and classes; namespaces do not count

// Called for each '{' and '}' in turn.
static void count_braces(int i)
{
    static std::vector<bool> open;
    if (is(i, "{")) {
        int p = i - 1;
        while ((is_word(p) && !is(p, "namespace")) || is(p, "::")) p--;
        open.push_back(!is(p, "namespace") && !(is_literal(p) && is(p - 1, "extern")));
        in_function += open.back();
    } else if (!open.empty()) {
        in_function -= open.back();
        open.pop_back();
    }
}

static int start_of_declaration(int i)
{
    while (i > 1 && !is(i - 1, "; { }")) i--;
    return i;
}

// The names that the declaration in [from, semicolon) declares: in each declarator the last word before its
// array bounds or its initialiser.
static std::vector<int> declared_names(int from, int semicolon)
{
    std::vector<int> names;
    const char *const classes = "struct class union";
    for (int i = from; i < semicolon;) {
        int stop = find(i, "[ = { , ;");
        if (is(stop, "{") && (is(stop - 1, classes) || is(stop - 2, classes)))
            stop = find(partner(stop) + 1, "[ = { , ;");
        names.push_back(stop - 1);
        i = find(stop, ", ;") + 1;
    }
    return names;
}

// From a qualifier to the parenthesis that opens the parameters, or 0 when this declares a variable.
static int open_of_parameters(int i)
{
    for (i++; i < size() && !is(i, "; = [ { , :"); i++) {
        if (is(i, "(")) return i;
        if (is(i, "__launch_bounds__ __attribute__ alignas decltype"))
            i = partner(i + 1);
        else if (is(i, "<"))
            i = partner(i);
        else if (is(i, "operator"))
            while (i < size() - 1 && !is(i + 1, "(")) i++;
    }
    return 0;
}

// __shared__ variables at file scope, each with the reference that a function which mentions it is to begin with.
static std::map<std::string, std::string> shared_at_file_scope;

static void rewrite_shared(int keyword)
{
    int start = start_of_declaration(keyword), semicolon = find(keyword, ";"), index = 0;
    bool dynamic = false;
    for (int i = start; i < semicolon; i++) {
        dynamic |= is(i, "extern");
        if (is(i, "extern static __device__ __shared__")) tokens[i].out = "";
    }
    std::string type = fill("cuda_cpu_shared_$#", {});
    tokens[start].out = "struct " + type + " { char cuda_cpu_first; " + tokens[start].out;
    tokens[semicolon].out = "; };";
    for (int n : declared_names(keyword + 1, semicolon)) {
        const char *pattern =
            " [[maybe_unused]] auto& $0 = ::cuda_cpu::shared_variable<$2>(&$1::$0, \"$0\");";
        if (dynamic) pattern = " [[maybe_unused]] auto& $0 = ::cuda_cpu::shared_dynamic(&$1::$0);";
        if (is(n + 1, "= {"))
            pattern = " static_assert(false, \"a __shared__ variable has no initial value: $0\");";
        std::string name = tokens[n].text;
        std::string reference = fill(pattern, {name, type, std::to_string(index++)});
        if (in_function)
            tokens[semicolon].out += reference;
        else
            shared_at_file_scope[name] = reference;
    }
}

static void declare_shared(int open, int body)
{
    auto mentions = [](int from, int to, const std::string &name) {
        while (from < to && tokens[from].text != name) from++;
        return from < to;
    };
    int end = partner(body);
    for (auto &[name, reference] : shared_at_file_scope)
        if (!mentions(open, body, name) && mentions(body, end, name)) {
            tokens[body].out += reference + " {"; // in which it may be declared anew
            tokens[end].out = "} " + tokens[end].out;
        }
}

// Parameters without their default values.
static std::string parameter_types(int open, int close)
{
    std::string types;
    for (int i = open + 1, end; i < close; i = end + 1) {
        int value = find(i, "= , )");
        end = find(value, ", )");
        types += (i > open + 1 ? ", " : "") + text_of(i, value);
    }
    return types;
}

static void register_kernel(int start, int open, int body)
{
    std::string bound;
    for (int i = start; i < open; i++)
        if (is(i, "__launch_bounds__")) bound = ", " + text_of(i + 2, find(i + 2, ", )"));
    tokens[partner(body)].out +=
        fill(" static ::cuda_cpu::KernelEntry cuda_cpu_kernel_$#((void (*)($0))$1, \"$1\"$2);",
             {parameter_types(open, body - 1), tokens[open - 1].text, bound});
}

static void register_variables(int start, int keyword)
{
    int semicolon = find(keyword, ";");
    const char *managed = "false";
    for (int i = start; i < semicolon && !is(i, "= ["); i++) {
        if (is(i, "extern __shared__ typedef using")) return;
        if (i < keyword && is(i, "__device__ __constant__ __managed__")) return;
        if (is(i, "__managed__")) managed = "true";
    }
    for (int name : declared_names(keyword + 1, semicolon))
        tokens[semicolon].out += fill(" static ::cuda_cpu::RegisterSymbol cuda_cpu_symbol_$#("
                                      "(const void*)&$0, sizeof($0), $1, \"$0\");",
                                      {tokens[name].text, managed});
}

// __global__, __device__, __constant__ or __managed__, in front of a function or a variable
static void rewrite_qualifier(int keyword)
{
    tokens[keyword].out = "";
    int start = start_of_declaration(keyword), open = open_of_parameters(keyword);
    int body = open ? partner(open) + 1 : 0;
    bool defined = is(body, "{"), registers = !in_function && !is(start, "template");
    bool kernel = defined && is(keyword, "__global__");
    if (defined) declare_shared(open, body);
    if (registers && kernel) register_kernel(start, open, body);
    if (kernel) kernel_end = partner(body);
    if (registers && !open) register_variables(start, keyword);
}

// ---- Warp-synchronous code ----

// Older reductions end in `volatile int* s; s[t] += s[t + 32]; s[t] += s[t + 16]; ...` without __syncwarp(), and
// count on the lanes of a warp moving in step. So that they do, each such assignment becomes
//     { auto value = s[t] + (s[t + 32]); in_step(); s[t] = value; in_step(); }
static std::set<std::string> volatile_names; // pointers and arrays, in this function

static void note_volatile(int keyword)
{
    int stop = find(keyword, ", ) ; = [ {");
    bool pointer = is(stop, "[") || text_of(keyword, stop).find('*') != std::string::npos;
    if (pointer && is_word(stop - 1) && stop - 1 > keyword)
        volatile_names.insert(tokens[stop - 1].text);
}

static void keep_in_step(int name)
{
    if (!is(name - 1, "; { } ) else") || !is(name + 1, "[")) return;
    int op = partner(name + 1) + 1, semicolon = find(op, ";");
    int equals = is(op, "+ - * / % & | ^") ? op + 1 : op;
    if (!is(equals, "=") || find(op, ", ;") != semicolon) return;
    std::string element = text_of(name, op);
    blank(name, equals + 1);
    tokens[name].out = "{ auto cuda_cpu_value = ";
    if (equals > op) tokens[name].out += element + " " + tokens[op].text;
    tokens[equals].out = "(";
    tokens[semicolon].out =
        fill("); ::cuda_cpu::in_step(); $0 = cuda_cpu_value; ::cuda_cpu::in_step(); }", {element});
}

// ---- Inline PTX ----

// asm("mov.u32 %0, %%smid;" : "=r"(x)) reads a special register; other PTX has no meaning on a CPU.
static void rewrite_asm(int keyword)
{
    int open = find(keyword, "("), close = partner(open), i = open + 1;
    std::string ptx;
    for (; is_literal(i); i++) ptx += tokens[i].text.substr(1, tokens[i].text.size() - 2);
    char name[32] = "?";
    int end = 0; // where a second instruction would start
    sscanf(ptx.c_str(), " mov.%*[a-z0-9] %%0 , %31[%a-z0-9_] ; %n", name, &end);
    std::string message = "inline PTX has no meaning on the CPU backend: " + ptx;
    std::string out = fill("static_assert(false, \"$0\")", {message});
    const char *reg = name + strspn(name, "%");
    if (listed(reg, "smid nsmid laneid warpid globaltimer clock clock64") && !ptx[end] &&
        is(i, ":"))
        out = fill("($0 = ::cuda_cpu::special_register(\"$1\"))",
                   {text_of(i + 2, partner(i + 2) + 1), reg});
    size_t dot = ptx.find('.'); // of add.s32: the processor's own instructions have no such names
    if (dot == 0 || dot == std::string::npos || !isalpha(ptx[dot - 1])) return;
    blank(keyword, close + 1);
    tokens[keyword].out = out;
}

// ---- All of it ----

static void rewrite(int i)
{
    Token &t = tokens[i];
    if (is(i, "{ }")) count_braces(i);
    if (is(i, "} ;") && !in_function) volatile_names.clear();
    if (is(i, "<<<"))
        rewrite_launch(i);
    else if (is(i, "__shared__"))
        rewrite_shared(i);
    else if (is(i, "volatile"))
        note_volatile(i);
    else if (in_function && volatile_names.count(t.text))
        keep_in_step(i);
    else if (is(i, "__global__ __device__ __constant__ __managed__"))
        rewrite_qualifier(i);
    else if (is(i, "asm __asm__ __asm"))
        rewrite_asm(i);
    else if (is(i, "__noinline__") && !is(i - 1, "( ,")) // which g++'s own headers write
        t.out = "__attribute__((noinline))";
    else if (is(i, "__launch_bounds__"))
        blank(i, partner(i + 1) + 1);
}

int main()
{
    std::string source(std::istreambuf_iterator<char>(std::cin), {});
    read_tokens(source + "\n");
    for (int i = 0; i < size(); i++) {
        try {
            rewrite(i);
        } catch (NotFound) {
        }
    }
    for (const Token &t : tokens) std::cout << t.before << t.out;
}
