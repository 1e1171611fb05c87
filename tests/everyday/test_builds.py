"""Builds and package managers, inside, without a network."""
import json
import pathlib
import subprocess
import tarfile
import zipfile

import pytest

from lab import needs

CMAKE = """cmake_minimum_required(VERSION 3.20)
project(hello C)
enable_testing()
add_library(words words.c)
add_executable(hello main.c)
target_link_libraries(hello words)
add_test(NAME greets COMMAND hello world)
set_tests_properties(greets PROPERTIES PASS_REGULAR_EXPRESSION "hello, world")
"""


@pytest.fixture
def sources(work):
    work.write("words.h", "const char *greeting(void);\n")
    work.write("words.c", '#include "words.h"\nconst char *greeting(void) { return "hello"; }\n')
    work.write("main.c", '#include <stdio.h>\n#include "words.h"\n'
               'int main(int c, char **v) { return c < 2 || printf("%s, %s\\n", greeting(), v[1]) < 0; }\n')


@needs("cmake", "ninja", "ccache", "gcc")
def test_cmake_ninja_ccache_ctest(work, sources):
    work.write("CMakeLists.txt", CMAKE)
    # One command: what ccache keeps is in the home of a one-off.
    said = work("cmake -S . -B out -G Ninja -DCMAKE_C_COMPILER_LAUNCHER=ccache; ninja -C out; ctest --test-dir out; "
                "ninja -C out -t clean; ninja -C out; ccache -s -v")
    assert "100% tests passed" in said
    hits = [line for line in said.splitlines() if line.strip().startswith("Hits:")]
    assert hits and int(hits[0].split()[1]) > 0, said


@needs("cmake", "ninja", "gcc")
@pytest.mark.parametrize("sanitizer, finds", [("address", "heap-use-after-free"), ("thread", "data race")])
def test_ctest_with_a_sanitizer(work, sanitizer, finds):
    """What has no bug passes, and what has one is found; by cmake's own test driver."""
    work.write("CMakeLists.txt",
               "cmake_minimum_required(VERSION 3.20)\nproject(t C)\nenable_testing()\nfind_package(Threads REQUIRED)\n"
               f"add_compile_options(-fsanitize={sanitizer} -g)\nadd_link_options(-fsanitize={sanitizer})\nadd_executable(t t.c)\n"
               "target_link_libraries(t Threads::Threads)\nadd_test(NAME sound COMMAND t)\nadd_test(NAME faulty COMMAND t x)\n")
    work.write("t.c", """#include <pthread.h>
#include <stdlib.h>
static int shared, use_lock = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *add(void *arg)
{
	for (int i = 0; i < 100000; i++) {
		if (use_lock) pthread_mutex_lock(&lock);
		shared++;
		if (use_lock) pthread_mutex_unlock(&lock);
	}
	return arg;
}
int main(int argc, char **argv)
{
	(void)argv;
	use_lock = argc == 1;
	volatile char *p = malloc(8);
	*p = 1;
	if (argc > 1) free((void *)p);
	int sum = *p;
	if (argc == 1) free((void *)p);
	pthread_t one, two;
	pthread_create(&one, NULL, add, NULL);
	pthread_create(&two, NULL, add, NULL);
	pthread_join(one, NULL);
	pthread_join(two, NULL);
	return argc == 1 ? shared != 200000 : sum > 1000;
}
""")
    said = work("cmake -S . -B out -G Ninja; ninja -C out; ctest --test-dir out --output-on-failure || true")
    assert "1 tests failed out of 2" in said and finds in said and "Test #1: sound ............................   Passed" in said, said


@needs("make", "gcc")
def test_make_with_500_jobs(work):
    """Each job is a shell and a program; all of them run at the same time, within the limits that there are by
    default."""
    work.write("Makefile", "all: $(patsubst %,out/%,$(shell seq 500))\nout/%:\n\t@mkdir -p out; sleep 1; echo $* >$@\n")
    work("make -s -j500")
    assert len(list((work.workspace / "out").iterdir())) == 500


@needs("python3-venv")
def test_venv_and_a_local_wheel(work):
    wheel = work.workspace / "greeter-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("greeter/__init__.py", "def main():\n    print('hello from a wheel')\n")
        archive.writestr("greeter-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: greeter\nVersion: 1.0\n")
        archive.writestr("greeter-1.0.dist-info/WHEEL",
                         "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("greeter-1.0.dist-info/entry_points.txt", "[console_scripts]\ngreet = greeter:main\n")
        archive.writestr("greeter-1.0.dist-info/RECORD", "")
    assert work("/usr/bin/python3 -m venv env; env/bin/pip -q install --no-index --find-links . greeter; env/bin/greet") == "hello from a wheel\n"


@needs("node", "npm")
def test_npm_ci_and_npx(work, tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package/package.json").write_text(json.dumps({"name": "greeter", "version": "1.0.0",
                                                               "bin": {"greet": "cli.js"}}))
    (tmp_path / "package/cli.js").write_text("#!/usr/bin/env node\nconsole.log('hello from', require('./package.json').name);\n")
    with tarfile.open(work.workspace / "greeter.tgz", "w:gz") as archive:
        archive.add(tmp_path / "package", "package")
    work.write("package.json",
               json.dumps({"name": "p", "version": "1.0.0", "dependencies": {"greeter": "file:greeter.tgz"}}))
    work("npm install --offline --no-audit --no-fund --package-lock-only")
    assert work("npm ci --offline --no-audit --no-fund >/dev/null; npx --offline greet") == "hello from greeter\n"


@needs("go")
def test_go(work):
    work.write("go.mod", "module example.org/hello\n\ngo 1.19\n")
    work.write("words/words.go", 'package words\n\nfunc Greeting() string { return "hello" }\n')
    work.write("words/words_test.go", 'package words\n\nimport "testing"\n\nfunc TestGreeting(t *testing.T) {\n'
               '\tif Greeting() != "hello" {\n\t\tt.Fail()\n\t}\n}\n')
    work.write("main.go", 'package main\n\nimport (\n\t"fmt"\n\n\t"example.org/hello/words"\n)\n\nfunc main() { fmt.Println(words.Greeting()) }\n')
    said = work("go vet ./...; go test ./...; go build -o hello .; ./hello", "--memory", "4G", "--processes", "500")
    assert "ok" in said and said.endswith("hello\n")


@needs("system-cargo")
def test_cargo(work):
    work.write("Cargo.toml",
               '[package]\nname = "hello"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\nwords = { path = "words" }\n\n[workspace]\nmembers = ["words"]\n')
    work.write("words/Cargo.toml", '[package]\nname = "words"\nversion = "0.1.0"\nedition = "2021"\n')
    work.write("words/src/lib.rs",
               'pub fn greeting() -> &\'static str { "hello" }\n#[test]\nfn greets() { assert_eq!(greeting(), "hello"); }\n')
    work.write("src/main.rs", 'fn main() { println!("{}", words::greeting()); }\n')
    said = work("cargo test -q --offline --workspace 2>&1; cargo run -q --offline", "--processes", "500")
    assert "1 passed" in said and said.endswith("hello\n")


MAVEN = pathlib.Path("/usr/share/maven-repo")


def plugin(name):
    """The one of this name that Debian has; its other versions lead to it."""
    jar = max(MAVEN.glob(f"org/apache/maven/plugins/{name}/*/*.jar"), key=lambda path: not path.is_symlink())
    return f"<plugin><artifactId>{name}</artifactId><version>{jar.parent.name}</version></plugin>"


@needs("mvn", "maven-plugins")
def test_maven_builds(work):
    """With the plugins that the host has in its repository: here those of Debian, which stay as they are."""
    repository = work.home / ".m2/repository"
    repository.parent.mkdir()
    subprocess.run(["cp", "-rL", MAVEN, repository], check=True)
    before = set(repository.rglob("*"))
    work.write("pom.xml", "<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId><artifactId>hello</artifactId><version>1</version>"
               "<properties><maven.compiler.source>17</maven.compiler.source><maven.compiler.target>17</maven.compiler.target></properties><build><plugins>"
               + "".join(map(plugin, ("maven-resources-plugin", "maven-compiler-plugin",
                                      "maven-jar-plugin"))) + "</plugins></build></project>\n")
    work.write("src/main/java/org/example/Hello.java",
               "package org.example; public class Hello { public static void main(String[] a) "
               '{ System.out.println("hello from maven"); } }\n')
    said = work("mvn -o -B resources:resources compiler:compile jar:jar; java -cp target/hello-1.jar org.example.Hello")
    assert "BUILD SUCCESS" in said and said.endswith("hello from maven\n"), said
    assert set(repository.rglob("*")) == before


@needs("mvn")
def test_maven_starts(work):
    """Without a repository there is no build, but maven and java run and read the project."""
    work.write("pom.xml", "<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId><artifactId>hello</artifactId>"
               "<version>1</version><packaging>pom</packaging></project>\n")
    assert "BUILD SUCCESS" in work("mvn -o -B -q -version; mvn -o -B validate", "--processes", "500", "--memory", "4G")
