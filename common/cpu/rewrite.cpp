// Turns preprocessed CUDA C++ into C++: the few things that g++ cannot read are replaced, token by token, and
// everything else passes through. Nothing is inserted that holds a newline, so all line numbers stay true.
//
//   kernel<<<grid, block>>>(a, b)   becomes   cuda_cpu::launcher(cuda_cpu::configure(grid, block), ...)(a, b)
//   __shared__ float t[32];         becomes   typedef float type_1[32]; auto& t = cuda_cpu::shared_variable<type_1, ...>();
//   __global__ void k(int) { }      keeps its body, and registers k for cudaLaunchKernel
//   __constant__ float c[8];        stays a variable, and registers c for cudaMemcpyToSymbol
//   volatile float* s; s[t] += s[t + 1];   lets the lanes of a warp move in step
//   asm("mov.u32 %0, %%smid;" ...)  becomes a call; other PTX is an error
//
// Usage: rewrite < in.ii > out.ii     (nvcc-cpu builds it on first use)
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

enum Kind {
    SPACE,
    WORD,
    TEXT,
    MARK
}; // TEXT: a string or character literal; MARK: one punctuation character

struct Token {
    Kind kind;
    std::string text; // as read
    std::string out;  // as written
    std::string file;
    int line;
    bool in_function; // in some function or class, not at namespace scope
};

static std::vector<Token> tokens;
static int unique = 0;
static bool failed = false;

static void error(const Token &at, const std::string &message)
{
    fprintf(stderr, "%s:%d: error: %s\n", at.file.c_str(), at.line, message.c_str());
    failed = true;
}

// ---- Reading tokens ----

// A line that starts with '#': a line marker sets file and line, a pragma for nvcc is dropped.
static std::string user_file;
static int user_line = 0;

// NVIDIA's own headers, where they are installed, are for its own compiler: say which one came in.
static void refuse_nvidia_header(const std::string &name, int line)
{
    static std::set<std::string> seen;
    size_t slash = name.rfind('/');
    if (slash == std::string::npos || !seen.insert(name).second) return;
    std::string folder = name.substr(0, slash), file = name.substr(slash + 1);
    for (int up = 0; up < 4 && !folder.empty(); up++) {
        std::ifstream probe(folder + "/crt/host_defines.h");
        for (const char *start : {"cu", "nv", "npp", "thrust/", "mma.h"})
            if (probe && file.compare(0, strlen(start), start) == 0 && !failed) {
                fprintf(stderr,
                        "%s:%d: error: this includes NVIDIA's <%s>, which the CPU backend does not "
                        "have\n",
                        user_file.c_str(), line, file.c_str());
                failed = true;
            }
        slash = folder.rfind('/');
        file = folder.substr(slash + 1) + "/" + file;
        folder = folder.substr(0, slash == std::string::npos ? 0 : slash);
    }
}

static std::string directive(const std::string &line, std::string &file, int &number, bool &system)
{
    int n = 0, end = 0;
    if (sscanf(line.c_str(), "# %d \"%n", &n, &end) == 1 && end > 0) {
        size_t close = line.rfind('"');
        std::string name = line.substr(end, close - end);
        system = line.find(" 3", close) != std::string::npos &&
                 name != user_file; // else: a macro of a system header
        if (!system)
            user_file = name;
        else
            refuse_nvidia_header(name, user_line);
        if (name == user_file) user_line = n;
        file = name;
        number = n - 1; // of the marker itself: the next line has number n
    }
    size_t word = line.find_first_not_of(" \t", 1);
    if (word != std::string::npos && line.compare(word, 6, "pragma") == 0) {
        size_t name = line.find_first_not_of(" \t", word + 6);
        for (const char *own :
             {"unroll", "nounroll", "nv_", "diag_", "hd_warning", "push_macro(\"__CUDA"})
            if (name != std::string::npos && line.compare(name, strlen(own), own) == 0) return "";
    }
    return line;
}

static size_t end_of_literal(const std::string &s, size_t quote, bool raw)
{
    if (raw) {
        size_t open = s.find('(', quote);
        std::string close = ")" + s.substr(quote + 1, open - quote - 1) + "\"";
        size_t end = s.find(close, open);
        return end == std::string::npos ? s.size() : end + close.size();
    }
    size_t i = quote + 1;
    while (i < s.size() && s[i] != s[quote] && s[i] != '\n') i += s[i] == '\\' ? 2 : 1;
    return i + 1 < s.size() ? i + 1 : s.size();
}

static bool word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (c & 0x80);
}

static void read_tokens(const std::string &s)
{
    std::string file;
    int line = 1;
    bool system = false, line_start = true;
    for (size_t i = 0, end; i < s.size(); i = end) {
        char c = s[i];
        Kind kind = MARK;
        std::string out;
        end = i + 1;
        if (line_start && c == '#') {
            end = s.find('\n', i);
            if (end == std::string::npos) end = s.size();
            kind = SPACE;
            out = directive(s.substr(i, end - i), file, line, system);
        } else if (system) { // nothing to rewrite up to the next line marker
            end = s.find("\n#", i);
            end = end == std::string::npos ? s.size() : end + 1;
            kind = SPACE;
        } else if (isspace((unsigned char)c)) {
            while (c != '\n' && end < s.size() && s[end] != '\n' && isspace((unsigned char)s[end]))
                end++;
            kind = SPACE;
        } else if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)s[end]))) {
            while (
                word_char(s[end]) || s[end] == '.' || (s[end] == '\'' && word_char(s[end + 1])) ||
                ((s[end] == '+' || s[end] == '-') && strchr("eEpP", s[end - 1]) && s[i + 1] != 'x'))
                end++;
            kind = WORD;
        } else if (word_char(c)) {
            while (end < s.size() && word_char(s[end])) end++;
            kind = WORD;
            std::string prefix = s.substr(i, end - i);
            bool raw = prefix.back() == 'R' && s[end] == '"';
            if (s[end] == '"' || s[end] == '\'')
                for (const char *p : {"L", "u", "U", "u8", "R", "LR", "uR", "UR", "u8R"})
                    if (prefix == p) kind = TEXT;
            if (kind == TEXT) end = end_of_literal(s, end, raw);
        } else if (c == '"' || c == '\'') {
            kind = TEXT;
            end = end_of_literal(s, i, false);
        }
        Token t{kind, s.substr(i, end - i), "", file, line, false};
        t.out = kind == SPACE && line_start && c == '#' ? out : t.text;
        tokens.push_back(t);
        for (char x : t.text) line += x == '\n';
        line_start = t.text.back() == '\n' || (line_start && kind == SPACE && c != '#');
    }
}

// ---- Moving among tokens ----

static const int NONE = -1;
static int size() { return (int)tokens.size(); }
static bool is(int i, const char *text) { return i >= 0 && i < size() && tokens[i].text == text; }
static int next(int i)
{
    do i++;
    while (i < size() && tokens[i].kind == SPACE);
    return i;
}
static int prev(int i)
{
    do i--;
    while (i >= 0 && tokens[i].kind == SPACE);
    return i;
}
static bool is_word(int i) { return i >= 0 && i < size() && tokens[i].kind == WORD; }
static bool one_of(int i, std::initializer_list<const char *> list)
{
    for (const char *text : list)
        if (is(i, text)) return true;
    return false;
}

// The token that closes the bracket at i, or opens it when step is prev. Angle brackets count one by one.
static int partner(int i, int (*step)(int))
{
    static const char *const pairs[] = {"(", ")", "[", "]", "{", "}", "<", ">"};
    const char *open = "", *close = "";
    for (int p = 0; p < 8; p++)
        if (is(i, pairs[p])) open = pairs[p], close = pairs[p ^ 1];
    int depth = 0;
    bool angle = *open == '<' || *open == '>';
    for (; i >= 0 && i < size(); i = step(i)) {
        if (is(i, open))
            depth++;
        else if (is(i, close) && --depth == 0)
            return i;
        else if (angle &&
                 (step == next ? one_of(i, {"(", "[", "{"}) : one_of(i, {")", "]", "}"}))) {
            i = partner(i, step);
            if (i == NONE) return NONE;
        }
    }
    return NONE;
}

static std::string text_of(int from, int to)
{
    std::string s;
    for (int i = from; i < to; i++)
        if (tokens[i].kind != SPACE)
            s += tokens[i].text;
        else if (!s.empty() && s.back() != ' ')
            s += ' ';
    while (!s.empty() && s.back() == ' ') s.pop_back();
    return s;
}

static void blank(int from, int to)
{
    for (int i = from; i < to; i++)
        if (tokens[i].kind != SPACE) tokens[i].out = "";
}

// ---- Launches ----

// First token of the expression that ends before i: k, ns::k, k<float, 256>, kernels[i], object.kernel, (*kernel).
static int start_of_kernel(int i)
{
    int t = prev(i);
    for (;;) {
        if (one_of(t, {"]", ")"})) {
            bool index = is(t, "]");
            t = partner(t, prev);
            if (!index) return t;
            t = prev(t);
            continue;
        }
        if (is(t, ">")) {
            t = partner(t, prev);
            if (t == NONE) return NONE;
            t = prev(t);
        }
        if (!is_word(t)) return NONE;
        int before = prev(t);
        if (is(before, "template")) before = prev(before);
        if (is(before, ":") && is(before - 1, ":")) {
            int scope = prev(before - 1);
            bool named = (is_word(scope) && !one_of(scope, {"return", "else", "do", "case"})) ||
                         is(scope, ">");
            if (!named) return before - 1;
            t = scope;
        } else if (is(before, ".")) {
            t = prev(before);
        } else if (is(before, ">") && is(before - 1, "-")) {
            t = prev(before - 1);
        } else {
            return t;
        }
    }
}

// The first of the three '>' that end the configuration which starts at i.
static int end_of_configuration(int i)
{
    for (; i < size(); i = next(i)) {
        if (one_of(i, {"(", "[", "{"})) {
            i = partner(i, next);
            if (i == NONE) return NONE;
        } else if (is(i, ">") && is(next(i), ">") && is(next(next(i)), ">")) {
            while (is(next(next(next(i))), ">")) i = next(i);
            return i;
        } else if (is(i, ";")) {
            return NONE;
        }
    }
    return NONE;
}

static void rewrite_launch(int open)
{
    int start = start_of_kernel(open), last = next(next(open));
    int close = end_of_configuration(next(last));
    if (start == NONE) return error(tokens[open], "no kernel name before <<<");
    if (close == NONE) return error(tokens[open], "no >>> for this <<<");
    std::string kernel = text_of(start, open), quoted;
    for (char c : kernel)
        quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    blank(start, last + 1);
    blank(close, next(next(close)) + 1);
    tokens[start].out = "::cuda_cpu::launcher(::cuda_cpu::configure(";
    tokens[close].out = "), \"" + quoted +
                        "\", [=](auto cuda_cpu_find) -> decltype(cuda_cpu_find(" + kernel +
                        ")) { return cuda_cpu_find(" + kernel +
                        "); }, [=](auto&... cuda_cpu_args) { " + kernel + "(cuda_cpu_args...); })";
}

// ---- Declarations ----

static int start_of_declaration(int i)
{
    while (prev(i) >= 0 && !one_of(prev(i), {";", "{", "}"})) i = prev(i);
    return i;
}

// The token at depth 0 that is one of list; NONE when the file ends first.
static int find_at_depth_0(int i, std::initializer_list<const char *> list)
{
    for (; i < size(); i = next(i)) {
        if (one_of(i, list)) return i;
        if (one_of(i, {"(", "[", "{"}) || (is(i, "<") && is_word(prev(i)))) {
            int end = partner(i, next);
            if (end == NONE) return NONE;
            i = end;
        }
    }
    return NONE;
}

static bool is_class(int i) { return one_of(i, {"struct", "class", "union"}); }

// The names that the declaration in [from, semicolon) declares: in each declarator the last word before its
// array bounds or its initialiser.
static std::vector<int> declared_names(int from, int semicolon)
{
    std::vector<int> names;
    for (int i = from; i < semicolon;) {
        int stop = find_at_depth_0(i, {"[", "=", "{", ",", ";"});
        while (is(stop, "{") && (is_class(prev(stop)) || is_class(prev(prev(stop)))))
            stop = find_at_depth_0(next(partner(stop, next)), {"[", "=", "{", ",", ";"});
        if (stop == NONE) break;
        names.push_back(prev(stop));
        int comma = find_at_depth_0(stop, {",", ";"});
        if (comma == NONE || comma >= semicolon) break;
        i = next(comma);
    }
    return names;
}

// Removes alignas(n) and __attribute__((aligned(n))) from [from, to) and returns n.
static std::string take_alignment(int from, int to)
{
    std::string n = "1";
    for (int i = from; i < to; i = next(i)) {
        if (!one_of(i, {"alignas", "__align__", "__attribute__"})) continue;
        int end = partner(next(i), next), first = next(i), last = end;
        if (end == NONE) break;
        if (is(i, "__attribute__")) {
            first = next(next(first)); // over the second ( to aligned
            if (!one_of(first, {"aligned", "__aligned__"})) continue;
            first = next(first);
            last = partner(first, next);
        }
        n = text_of(next(first), last);
        blank(i, end + 1);
    }
    return n;
}

static void rewrite_shared(int keyword)
{
    int start = start_of_declaration(keyword), semicolon = find_at_depth_0(keyword, {";"});
    if (semicolon == NONE) return error(tokens[keyword], "no ; after this __shared__ declaration");
    bool dynamic = false;
    for (int i = start; i < semicolon; i = next(i)) {
        dynamic |= is(i, "extern");
        if (one_of(i, {"extern", "static", "__device__"})) blank(i, i + 1);
    }
    std::string align = take_alignment(start, semicolon), after;
    tokens[keyword].out = "typedef";
    for (int name : declared_names(next(keyword), semicolon)) {
        std::string number = std::to_string(++unique), type = "cuda_cpu_type_" + number,
                    tag = "cuda_cpu_tag_" + number;
        if (is(next(name), "=") || is(next(name), "{"))
            error(tokens[name], "a __shared__ variable cannot have an initial value: '" +
                                    tokens[name].text + "'");
        if (!tokens[keyword].in_function)
            after += " struct " + tag + "; static const ::cuda_cpu::SharedAtFileScope<" + type +
                     ", " + tag + "> " + tokens[name].text + "{};";
        else if (dynamic)
            after += " [[maybe_unused]] auto& " + tokens[name].text +
                     " = ::cuda_cpu::shared_dynamic<" + type + ">();";
        else
            after += " struct " + tag + "; auto& " + tokens[name].text +
                     " = ::cuda_cpu::shared_variable<" + type + ", " + tag + ">(\"" +
                     tokens[name].text + "\", " + align + ");";
        tokens[name].out = type;
    }
    tokens[semicolon].out = ";" + after;
}

// Parameters without their default values.
static std::string parameter_types(int open, int close)
{
    std::string types;
    for (int i = next(open); i < close;) {
        int stop = i;
        while (stop < close && !is(stop, "="))
            stop = one_of(stop, {"(", "[", "{"}) ? next(partner(stop, next)) : next(stop);
        types += text_of(i, stop);
        if (stop >= close) break;
        int comma = find_at_depth_0(stop, {",", ")"});
        if (comma == NONE || comma >= close) break;
        i = comma;
    }
    return types;
}

static bool is_template(int start) { return is(start, "template") || is(prev(start), ">"); }

// From a qualifier to the parenthesis that opens the parameters, or NONE when this declares a variable.
static int open_of_parameters(int i)
{
    for (i = next(i); i < size(); i = next(i)) {
        if (one_of(i, {"__launch_bounds__", "__attribute__", "alignas", "__align__",
                       "__cluster_dims__", "decltype", "__maxnreg__"})) {
            i = partner(next(i), next);
            if (i == NONE) return NONE;
        } else if (is(i, "operator")) {
            while (i < size() && !is(i, "(")) i = next(i);
            return i;
        } else if (is(i, "<") && is_word(prev(i))) {
            i = partner(i, next);
            if (i == NONE) return NONE;
        } else if (is(i, "(")) {
            return i;
        } else if (one_of(i, {";", "=", "[", "{", ",", ":"}) &&
                   !(is(i, ":") && (is(i + 1, ":") || is(i - 1, ":")))) {
            return NONE;
        }
    }
    return NONE;
}

static void rewrite_kernel(int keyword)
{
    tokens[keyword].out = "";
    int open = open_of_parameters(keyword);
    if (open == NONE || tokens[keyword].in_function) return;
    int close = partner(open, next), name = prev(open), body = close == NONE ? NONE : next(close);
    if (!is(body, "{") || !is_word(name) || is_template(start_of_declaration(keyword))) return;
    int end = partner(body, next);
    if (end == NONE) return;
    std::string k = tokens[name].text, bound;
    for (int i = keyword; i < open; i = next(i))
        if (is(i, "__launch_bounds__"))
            bound = ", " + text_of(next(next(i)), find_at_depth_0(next(next(i)), {",", ")"}));
    tokens[end].out += " static ::cuda_cpu::RegisterKernel cuda_cpu_kernel_" +
                       std::to_string(++unique) + "(static_cast<void (*)(" +
                       parameter_types(open, close) + ")>(" + k + "), \"" + k + "\"" + bound + ");";
}

static std::set<int> registered; // semicolons of the declarations that have been seen

static void rewrite_variable(int keyword)
{
    bool managed = is(keyword, "__managed__");
    tokens[keyword].out = "";
    if (tokens[keyword].in_function || open_of_parameters(keyword) != NONE) return;
    int start = start_of_declaration(keyword), semicolon = find_at_depth_0(keyword, {";"});
    if (semicolon == NONE || is_template(start) || !registered.insert(semicolon).second) return;
    for (int i = start; i < semicolon; i = next(i)) {
        if (one_of(i, {"extern", "__shared__", "typedef", "using"})) return;
        managed |= is(i, "__managed__");
        if (one_of(i, {"=", "["})) break;
    }
    for (int name : declared_names(next(keyword), semicolon)) {
        std::string v = tokens[name].text;
        tokens[semicolon].out += " static ::cuda_cpu::RegisterSymbol cuda_cpu_symbol_" +
                                 std::to_string(++unique) + "((const void*)&" + v + ", sizeof(" +
                                 v + "), " + (managed ? "true" : "false") + ", \"" + v + "\");";
    }
}

// ---- Warp-synchronous code ----

// Older reductions end in `volatile int* s; s[t] += s[t + 32]; s[t] += s[t + 16]; ...` without __syncwarp(), and
// count on the lanes of a warp moving in step. So that they do, each such assignment becomes
//     { auto value = s[t] + (s[t + 32]); in_step(); s[t] = value; in_step(); }
static void keep_in_step(const std::string &name, int from, int to)
{
    for (int i = from; i < to; i = next(i)) {
        bool statement = is(i, name.c_str()) && is(next(i), "[") &&
                         (one_of(prev(i), {";", "{", "}", ")", "else"}));
        if (!statement) continue;
        int close = partner(next(i), next), op = next(close), equals = op;
        if (close == NONE) return;
        if (one_of(op, {"+", "-", "*", "/", "%", "&", "|", "^"})) equals = op + 1;
        int semicolon = find_at_depth_0(op, {";"});
        bool assignment =
            is(equals, "=") && !is(equals + 1, "=") && find_at_depth_0(op, {",", ";"}) == semicolon;
        if (!assignment || semicolon == NONE || semicolon >= to) continue;
        std::string element = text_of(i, close + 1);
        tokens[i].out = "{ auto cuda_cpu_value = " +
                        (equals == op ? "" : element + " " + tokens[op].text + " ") + "(";
        blank(next(i), equals + 1);
        tokens[semicolon].out =
            "); ::cuda_cpu::in_step(); " + element + " = cuda_cpu_value; ::cuda_cpu::in_step(); }";
        i = semicolon;
    }
}

static void rewrite_volatile(int keyword)
{
    if (!tokens[keyword].in_function && !is(prev(keyword), "(") && !is(prev(keyword), ",")) return;
    int stop = keyword, star = NONE;
    while (stop < size() && !one_of(stop, {",", ")", ";", "=", "[", "{"})) {
        if (is(stop, "*")) star = stop;
        stop = next(stop);
    }
    int name = prev(stop), from = stop;
    if (!is_word(name) || name == keyword || (star == NONE && !is(stop, "["))) return;
    while (from < size() && !one_of(from, {")", ";", "{"}))
        from = one_of(from, {"(", "["}) ? next(partner(from, next)) : next(from);
    int body = is(from, ")") ? next(from) : from, to = size();
    if (is(from, ")") && !is(body, "{")) return; // a declaration, or a cast
    if (is(body, "{")) to = partner(body, next);
    for (int depth = 0, i = body; is(from, ";") && i < size();
         i = next(i)) { // to the end of the block it is declared in
        depth += is(i, "{") - is(i, "}");
        if (depth < 0) {
            to = i;
            break;
        }
    }
    if (to != NONE) keep_in_step(tokens[name].text, body, to);
}

// ---- Inline PTX ----

// asm("mov.u32 %0, %%smid;" : "=r"(x)) reads a special register; other PTX has no meaning on a CPU.
static void rewrite_asm(int keyword)
{
    int open = next(keyword);
    while (one_of(open, {"volatile", "__volatile__", "inline", "goto"})) open = next(open);
    int close = is(open, "(") ? partner(open, next) : NONE;
    if (close == NONE || tokens[next(open)].kind != TEXT) return;
    std::string ptx;
    int i = next(open);
    for (; tokens[i].kind == TEXT; i = next(i))
        ptx += tokens[i].text.substr(1, tokens[i].text.size() - 2);
    char type[8], name[32] = "";
    int end = 0;
    bool reads = sscanf(ptx.c_str(), " mov.%7[a-z0-9] %%0 , %%%*[%]%31[a-z0-9_.] ;%n", type, name,
                        &end) == 2;
    if (!reads)
        reads =
            sscanf(ptx.c_str(), " mov.%7[a-z0-9] %%0 , %%%31[a-z0-9_.] ;%n", type, name, &end) == 2;
    bool known = false;
    for (const char *r : {"smid", "nsmid", "laneid", "warpid", "globaltimer", "clock", "clock64"})
        known |= r == std::string(name);
    if (reads && known && is(i, ":") && tokens[next(i)].kind == TEXT) {
        int value = next(next(i));
        blank(keyword, close + 1);
        tokens[keyword].out = "(" + text_of(value, partner(value, next) + 1) +
                              " = ::cuda_cpu::special_register(\"" + name + "\"))";
        return;
    }
    size_t dot = ptx.find('.'), semi = ptx.find(';');
    if (dot != std::string::npos && semi != std::string::npos && dot > 0 &&
        isalpha((unsigned char)ptx[dot - 1]))
        error(tokens[keyword], "inline PTX has no meaning on the CPU backend: " + ptx);
}

// ---- All of it ----

// Marks what lies in a function (or class); braces of namespaces and extern "C" do not count.
static void find_scopes()
{
    std::vector<bool> open;
    int inner = 0;
    for (int i = 0; i < size(); i++) {
        if (is(i, "{")) {
            int p = prev(i);
            while (is_word(p) && !is(p, "namespace")) p = prev(p);
            while (is(p, ":") || (is_word(p) && !is(p, "namespace"))) p = prev(p);
            bool scope =
                is(p, "namespace") || (p >= 0 && tokens[p].kind == TEXT && is(prev(p), "extern"));
            open.push_back(!scope);
            inner += !scope;
        } else if (is(i, "}") && !open.empty()) {
            inner -= open.back();
            open.pop_back();
        }
        tokens[i].in_function = inner > 0;
    }
}

static void rewrite(int i)
{
    Token &t = tokens[i];
    if (t.kind == MARK && is(i, "<") && is(i + 1, "<") && is(next(i + 1), "<") &&
        !is(prev(i), "<") && !is(prev(i), "operator"))
        return rewrite_launch(i);
    if (t.kind != WORD) return;
    if (is(i, "__shared__"))
        rewrite_shared(i);
    else if (is(i, "volatile"))
        rewrite_volatile(i);
    else if (is(i, "__global__"))
        rewrite_kernel(i);
    else if (one_of(i, {"__device__", "__constant__", "__managed__"}))
        rewrite_variable(i);
    else if (one_of(i, {"asm", "__asm__", "__asm"}))
        rewrite_asm(i);
    else if (one_of(i, {"__host__", "__grid_constant__"}))
        t.out = "";
    else if (is(i, "__forceinline__"))
        t.out = "inline __attribute__((always_inline))";
    else if (is(i, "__noinline__") && !one_of(prev(i), {"(", ","}))
        t.out = "__attribute__((noinline))";
    else if (is(i, "__align__") && t.out == t.text)
        t.out = "alignas";
    else if (one_of(i, {"__launch_bounds__", "__cluster_dims__", "__maxnreg__"}) &&
             is(next(i), "(")) {
        int end = partner(next(i), next);
        if (end != NONE) blank(i, end + 1);
    }
}

int main()
{
    std::ios::sync_with_stdio(false);
    std::string source((std::istreambuf_iterator<char>(std::cin)),
                       std::istreambuf_iterator<char>());
    source += "\n";
    read_tokens(source);
    find_scopes();
    for (int i = 0; i < size(); i++) rewrite(i);
    for (const Token &t : tokens) std::cout << t.out;
    return failed ? 1 : 0;
}
