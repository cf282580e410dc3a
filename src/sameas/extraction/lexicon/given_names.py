"""Given names that are common in many countries: the first word of a name that is one makes it look like a person's.

Rule: names that are places, months or companies as often as people (`Florence`, `Jordan`, `Austin`, `Ford`) are left out.
A name that is not here only means that its shape tells nothing.
"""

# ruff: noqa: SIM905 (the list is the data here)

GIVEN_NAMES = frozenset(
    """
    Aaron Abdul Abdullah Abigail Abraham Achim Ada Adam Adèle Adriana Agnes Agnès Ahmad Ahmed Aisha Akira Alain Alan Albert
    Alberto Alejandra Alejandro Aleksandr Aleksandra Alessandra Alessandro Alex Alexander Alexandra Alexandre Alexei Alexey
    Alfonso Alfred Alfredo Ali Alice Alicia Alina Alison Allan Allen Amanda Amélie Amina Amir Amit Amy Ana Anand Anastasia
    Andrea Andreas Andrei André Andrés Andrew Andrey Andrzej Angela Angelika Anil Anita Anja Anke Ann Anna Anne Annegret
    Annette Annie Anthony Antoine Anton Antonia Antonio António Antoni Anya Ari Armin Arnaud Arne Arnold Arthur Arturo Arun
    Astrid Audrey August Augusto Aurélie Axel Ayesha Ayşe Barbara Barry Bart Bastian Beat Beata Beatrice Beatriz Ben Benedikt
    Benjamin Benoît Bernard Bernd Bernhard Bertrand Beth Betty Bianca Bill Birgit Björn Bob Boris Brandon Brenda Brian
    Brigitte Britta Bruce Bruno Camille Carl Carla Carlo Carlos Carmen Carol Carolina Caroline Carolyn Carsten Caterina
    Catherine Cathy Cécile Céline César Chantal Charles Charlie Chiara Chloé Chris Christa Christian Christiane Christina
    Christine Christof Christoph Christophe Christopher Claire Clara Clarence Claude Claudia Claudio Claus Clemens Colin
    Connor Conrad Constanze Corinna Cornelia Craig Cristian Cristina Cynthia Dagmar Dan Dana Daniel Daniela Daniele Danielle
    Dariusz Dave David Deborah Debra Denis Dennis Derek Detlef Diana Diane Diego Dieter Dietmar Dirk Dmitri Dmitry Dominik
    Dominique Don Donald Donna Doris Dorothea Dorothy Doug Douglas Duncan Dylan Ed Eduard Eduardo Edward Edwin Egon Eileen
    Ekaterina Elena Eleanor Eleonora Elias Elisa Elisabeth Elise Elizabeth Elke Ella Ellen Elsa Emil Emilia Emily Emma
    Emmanuel Enrico Enrique Eric Erica Erich Erik Erika Erin Ernest Ernesto Ernst Esther Ethan Étienne Eugen Eugene Eugenia
    Eva Eve Evelyn Ewa Fabian Fabio Fatima Federico Felix Félix Ferdinand Fernando Filip Fiona Florian Frances Francesca
    Francesco Francis Francisco Franck François Françoise Frank Franz Franziska Fred Frédéric Frederick Frederik Frida
    Friedrich Fritz Gabriel Gabriela Gabriele Gareth Gary Gavin Geoffrey Georg George Georges Gerald Gerard Gérard Gerd
    Gerhard Gertrud Giacomo Gianluca Gianni Gilbert Gilles Giorgio Giovanni Gisela Giulia Giuseppe Glenn Gloria Gordon Grace
    Graham Greg Gregor Gregory Greta Grzegorz Guido Guillaume Guillermo Gunnar Günter Günther Gustav Gustavo Guy Hana Hank
    Hanna Hannah Hannes Hans Harald Harold Harriet Harry Hartmut Hasan Hassan Heather Hector Héctor Hedwig Heide Heidi Heike
    Heiko Heiner Heinrich Heinz Helen Helena Helene Hélène Helga Helmut Henri Henrik Henry Herbert Hermann Hilary Hilde
    Hildegard Hiroshi Holger Horst Howard Hubert Hugh Hugo Hussein Ian Ibrahim Ida Ignacio Igor Ilse Imran Ines Inés Inga Inge
    Ingeborg Ingo Ingrid Irene Irina Iris Isaac Isabel Isabella Isabelle Ivan Iván Ivo Jack Jackie Jacob Jacqueline Jacques
    Jaime Jakob James Jan Jana Jane Janet Janice Janine Jason Javier Jean Jeanne Jeff Jeffrey Jennifer Jens Jeremy Jérôme
    Jerry Jesse Jessica Jesús Jill Jim Jimmy Joachim Joan Joana Joanna Joanne João Joe Joel Johan Johann Johanna Johannes John
    Johnny Jon Jonas Jonathan Jörg José Josef Joseph Joshua Juan Juana Judith Julia Julian Juliane Julie Julien Juliette
    Julius Jürgen Justin Jutta Kai Karen Karin Karl Karla Karolina Karsten Kate Katharina Katherine Kathleen Kathrin Kathy
    Katja Katrin Kazuo Keith Kelly Ken Kenji Kenneth Kerstin Kevin Khalid Kim Kirsten Klara Klaus Konrad Konstantin Kristian
    Kristin Kristina Krzysztof Kurt Kyle Lara Larry Lars Laura Laurence Laurent Lauren Lawrence Lea Léa Leah Lee Leila Lena
    Leo Léo Leon Leonard Leonardo Leonie Leonora Leopold Leslie Li Lidia Liam Lilian Lily Linda Lisa Liu Liz Lorenzo Lorenz
    Lothar Lou Louis Louise Luc Luca Lucas Lucia Lucía Lucie Lucy Ludwig Luigi Luis Luisa Luiz Lukas Luke Lutz Lydia Lynn
    Maarten Magda Magdalena Magnus Mahmoud Maja Małgorzata Manfred Manuel Manuela Marc Marcel Marcella Marcelo Marcin Marco
    Marcos Marcus Margaret Margarita Margit Margot Marguerite Maria María Marian Marianne Marie Marilyn Marina Mario Marion
    Marisa Marjorie Mark Markus Marlene Marta Martha Martin Martina Martine Mary Massimo Mateo Mathias Mathieu Mathilde
    Matt Matteo Matthew Matthias Matthieu Maurice Maurizio Max Maximilian Maya Mei Mehmet Melanie Melissa Mercedes Mia
    Michael Michaela Michał Michel Michele Michèle Michelle Miguel Mihai Mika Mike Mikhail Mila Milan Milena Ming Miriam
    Mireille Mohamed Mohammad Mohammed Moritz Mona Monica Monika Monique Muhammad Murray Mustafa Nadia Nadine Nancy Naomi
    Natalia Natalie Natasha Nathalie Nathan Neil Nelson Niamh Nicholas Nick Nico Nicola Nicolas Nicole Niels Nigel Nikolai
    Nikolaus Nils Nina Noah Nora Norbert Norman Olaf Ole Oleg Olga Oliver Olivia Olivier Omar Oscar Oskar Otto Pablo Pamela
    Paola Paolo Pascal Patricia Patrick Patrik Patrizia Paul Paula Pauline Paulo Pavel Pawel Pedro Peggy Penelope Per Pete
    Peter Petra Phil Philip Philipp Philippe Phillip Pia Pierre Pieter Pietro Piotr Priya Rachel Rafael Rainer Raj Rajesh Ralf
    Ralph Ramón Raphael Raúl Ravi Ray Raymond Rebecca Regina Reiner Reinhard Renate Renato René Renée Ricardo Riccardo Richard
    Rita Rob Robert Roberta Roberto Robin Rocío Rodrigo Roger Roland Rolf Roman Romain Ron Ronald Ronja Rosa Rosalind Rose
    Rosemarie Ross Roy Ruben Rüdiger Rudolf Rupert Russell Ruth Ryan Sabine Sabrina Sally Salvatore Sam Samantha Samir Samuel
    Sandra Sanjay Sara Sarah Sascha Saskia Sean Sébastien Sebastian Serge Sergei Sergey Sergio Seth Shannon Sharon Shaun
    Sheila Shirley Sibylle Siegfried Sigrid Silke Silvia Simon Simona Simone Sofia Sofía Solveig Sonia Sonja Sophia Sophie
    Stefan Stefania Stefanie Stefano Steffen Stella Stéphane Stephanie Stephen Steve Steven Stuart Sue Sunil Susan Susana
    Susanna Susanne Suzanne Svetlana Sven Svenja Sylvia Sylvie Takashi Tamara Tanja Tara Tatiana Ted Teresa Terry Thea Theo
    Theodor Theodore Theresa Thérèse Thibault Thierry Thomas Thorsten Tiago Tilo Tim Timo Timothy Tina Tobias Todd Tom Tomás
    Tomasz Tony Torsten Tracy Trevor Udo Ulf Uli Ulrich Ulrike Ulla Ursula Ute Uwe Valentina Valerie Valérie Vanessa Vera
    Veronica Verena Veronika Vicente Victor Víctor Vijay Viktor Viktoria Vincent Vincenzo Viola Virginie Vivian Vladimir
    Volker Walter Waltraud Wanda Wang Wendy Werner Wilfried Wilhelm Will Willem William Willi Willy Wolf Wolfgang Xavier
    Yannick Yasmin Yolanda Yoko Yuki Yuri Yusuf Yves Yvonne Zhang Zoe Zoë
    """.split()
)
