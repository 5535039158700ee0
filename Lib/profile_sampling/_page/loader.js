// What starts the page: it unpacks the program, which is a third as large so.
//
// This file owns that and nothing else.  It is the one script of the page that
// browsers see at first; the program is allowed to run by its own digest.
// @ts-check

const note = document.querySelector('#view .note');
if (note !== null && 'DecompressionStream' in globalThis) {
  note.textContent = 'Loading the profile …';
}
const packed = document.getElementById('program')?.textContent ?? '';
const stream = new Blob([Uint8Array.from(
  atob(packed), (char) => char.charCodeAt(0))]).stream();
const program = document.createElement('script');
program.type = 'module';
program.textContent = await new Response(
  stream.pipeThrough(new DecompressionStream('gzip'))).text();
document.head.append(program);
// A page that is saved has it once.
program.remove();

export {};
